# How the tests of a folder are run: each prints TAP, and finds what it needs in the environment.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
TEST_EXTENSIONS = .sh

AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	MPIRUN='$(MPIRUN)'; export MPIRUN; \
	ASAN_OPTIONS="$${ASAN_OPTIONS-$(FLASH_ASAN_OPTIONS)}"; export ASAN_OPTIONS; \
	$(FLASH_TSAN_ENVIRONMENT) \
	OMPI_INFO='$(OMPI_INFO)'; export OMPI_INFO; \
	FLASH_COMPONENT_PATH='$(abs_top_builddir)/ompi_coll_flash/.libs:$(ompi_pkglibdir)'; \
	export FLASH_COMPONENT_PATH;
