/*
 * pvars.c: see pvars.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "pvars.h"

#include "mpitest.h"

static MPI_T_pvar_session session;

static int find(const char *wanted, int *class, MPI_Datatype *type)
{
    int count = 0;

    MPI_T_pvar_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[128];
        int length = sizeof(name), none = 0, level, bind, readonly, continuous, atomic;
        MPI_T_enum values;

        if (MPI_T_pvar_get_info(index, name, &length, &level, class, type, &values, NULL, &none,
                                &bind, &readonly, &continuous, &atomic) == MPI_SUCCESS &&
            strcmp(name, wanted) == 0) {
            check(readonly && continuous, "%s: read-only %d, continuous %d", name, readonly,
                  continuous);
            return index;
        }
    }
    check(false, "no variable %s", wanted);
    return -1;
}

MPI_T_pvar_handle pvar_of(const char *name, int class_wanted, MPI_Datatype type_wanted)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    MPI_Datatype type;
    int class, values, index = find(name, &class, &type);

    if (index >= 0) {
        check(class == class_wanted && type == type_wanted, "%s: class %d", name, class);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &values);
        check(values == 1, "%s: %d values", name, values);
    }
    return handle;
}

unsigned long long pvar_count(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    check(handle != MPI_T_PVAR_HANDLE_NULL &&
              MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS,
          "MPI_T_pvar_read");
    return value;
}

double pvar_seconds(MPI_T_pvar_handle handle)
{
    double value = -1;

    check(handle != MPI_T_PVAR_HANDLE_NULL &&
              MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS,
          "MPI_T_pvar_read");
    return value;
}

void pvar_free(MPI_T_pvar_handle *handle)
{
    MPI_T_pvar_handle_free(session, handle);
}

void pvars_with(void (*run)(void))
{
    int level;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&session);
    run();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}
