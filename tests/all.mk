# all.mk: the tests of all folders beside each other, of a build whose folder make is in: `make check` takes one
# folder behind the other, and waits at the end of each for the last one of its tests. test.sh runs it.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

.PHONY: check cluster mpi unit
check: cluster mpi unit

cluster unit:
	+$(MAKE) --directory=tests/$@ check

# In tests/mpi, make builds what is in tests/gpu.
mpi:
	+gpu=0; $(MAKE) --directory=tests/gpu check || gpu=$$?; \
	$(MAKE) --directory=tests/mpi check-beside && exit $$gpu
