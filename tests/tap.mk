# How the tests of a folder are run: each prints TAP, and finds what it needs in the environment.
LOG_DRIVER = $(top_srcdir)/tests/timed.sh env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
TEST_EXTENSIONS = .sh
MOSTLYCLEANFILES = *.time

# What the sanitizers are to leave out stands, with the reasons, in files of their own.
if SANITIZE_ADDRESS
# Under glibc 2.36 gcc's sanitizer takes wrong addresses for the thread-local storage of libraries
# that are loaded later, and its leak check crashes on them: it is not to look for them.
# tests/mpi/messages.c is loaded before the sanitizer.
asan_options = intercept_tls_get_addr=0:verify_asan_link_order=0:$(FLASH_ASAN_OPTIONS)
sanitizer_environment = \
	FLASH_TEST_TIMEOUT="$${FLASH_TEST_TIMEOUT-600}"; export FLASH_TEST_TIMEOUT; \
	ASAN_OPTIONS="$${ASAN_OPTIONS-$(asan_options)}"; export ASAN_OPTIONS; \
	LSAN_OPTIONS="$${LSAN_OPTIONS-$(FLASH_LSAN_OPTIONS)}"; export LSAN_OPTIONS; \
	UBSAN_OPTIONS="$${UBSAN_OPTIONS-print_stacktrace=1}"; export UBSAN_OPTIONS;
endif
if SANITIZE_THREAD
tsan_options = suppressions=$(abs_top_srcdir)/tests/tsan.supp:history_size=7
# UCX's hooks into malloc and the sanitizer's crash together.
sanitizer_environment = \
	FLASH_TEST_TIMEOUT="$${FLASH_TEST_TIMEOUT-900}"; export FLASH_TEST_TIMEOUT; \
	FLASH_TEST_STRIDE="$${FLASH_TEST_STRIDE-11}"; export FLASH_TEST_STRIDE; \
	TSAN_OPTIONS="$${TSAN_OPTIONS-$(tsan_options)}"; export TSAN_OPTIONS; \
	FLASH_SANITIZER=thread; export FLASH_SANITIZER; \
	UCX_MEM_EVENTS=n; export UCX_MEM_EVENTS;
endif

# Open MPI's libraries for hardware with messages of its own look for it for 0.1 s each, in each MPI_Init.
matching = OMPI_MCA_mtl="$${OMPI_MCA_mtl-^psm,psm2,ofi}"; export OMPI_MCA_mtl;

AM_TESTS_ENVIRONMENT = \
	$(matching) \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	MPIRUN='$(MPIRUN)'; export MPIRUN; \
	MPICC='$(MPICC)'; export MPICC; \
	MPIFC='$(MPIFC)'; export MPIFC; \
	FLASH_NO_FORTRAN='$(flash_no_fortran)'; export FLASH_NO_FORTRAN; \
	$(sanitizer_environment) \
	OMPI_INFO='$(OMPI_INFO)'; export OMPI_INFO; \
	FLASH_COMPONENT_PATH='$(abs_top_builddir)/ompi_coll_flash/.libs:$(ompi_pkglibdir)'; \
	export FLASH_COMPONENT_PATH;
