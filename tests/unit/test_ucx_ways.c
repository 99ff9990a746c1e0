/*
 * test_ucx_ways.c: what flash reads of the ways that UCX prints of contexts and endpoints.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_ways.h"
#include "tap.h"

enum { TEXT_MAX = 4096 };

static void reads(const char *what, const char *printed, bool tcp, bool faster, const char *names)
{
    flash_ucx_ways_t ways;
    char text[TEXT_MAX];

    snprintf(text, sizeof(text), "%s", printed);
    flash_ucx_ways_read(text, &ways);
    if (!ok(ways.tcp == tcp && ways.faster == faster && strcmp(ways.names, names) == 0, "%s",
            what)) {
        diag("tcp %d, faster %d, \"%s\"", ways.tcp, ways.faster, ways.names);
    }
}

static void endpoints(void)
{
    reads(
        "an endpoint of two interfaces",
        "#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
        "#                 lane[0]:  1:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] am\n"
        "#                 lane[1]:  0:tcp/eth0.100.0 md[0]          -> md[0]/tcp/sysdev[255] "
        "wireup\n"
        "#\n#                tag_send: 0..<egr/short>..8185..<egr/zcopy>..8192..<rndv>..(inf)\n",
        true, false, "tcp (lo), tcp (eth0.100)");
    reads("an endpoint of paths through one device, and through memory",
          "#                 lane[0]:  2:rc_mlx5/mlx5_0:1.0 md[4]      -> md[4]/ib/sysdev[0] am\n"
          "#                 lane[1]:  2:rc_mlx5/mlx5_0:1.1 md[4]      -> md[4]/ib/sysdev[0] "
          "rma_bw#1\n"
          "#                 lane[2]: 12:cma/memory.0 md[5]            -> md[5]/cma/sysdev[255] "
          "rma_bw#0\n"
          "#                 lane[3]:  0:tcp/eth0.0 md[0]              -> md[0]/tcp/sysdev[255] "
          "wireup\n",
          true, true, "rc_mlx5 (mlx5_0:1), tcp (eth0)");
    reads(
        "an endpoint through memory alone",
        "#                 lane[0]:  3:sysv/memory.0 md[2]           -> md[2]/sysv/sysdev[255] am\n"
        "#                 lane[1]:  7:cuda_ipc/cuda.0 md[6]         -> md[6]/cuda_ipc/sysdev[1] "
        "rma_bw#0\n",
        false, false, "");
}

static void contexts(void)
{
    reads("a context without devices of RDMA",
          "#     component 4  :  ib\n#            md 1  :  component 1  tcp \n"
          "#      resource 0  :  md 0  dev 0  flags -- self/memory0\n"
          "#      resource 1  :  md 1  dev 1  flags -- tcp/eth0\n",
          true, false, "tcp (eth0)");
    reads("a context with one",
          "#      resource 10 :  md 1  dev 1  flags -- tcp/eth0\n"
          "#      resource 11 :  md 4  dev 12 flags a- ud_verbs/rxe0:1\n",
          true, true, "tcp (eth0), ud_verbs (rxe0:1)");
}

static void chooses(const char *what, const char *devices, const char *networks,
                    const char *expected)
{
    char chosen[FLASH_UCX_NETWORKS_MAX];

    flash_ucx_ways_choose(devices, networks, chosen);
    if (!ok(strcmp(chosen, expected) == 0, "%s", what)) {
        diag("\"%s\"", chosen);
    }
}

static void devices(void)
{
    char text[] = "#      resource 1  :  md 1  dev 1  flags -- tcp/eth0\n"
                  "#      resource 2  :  md 1  dev 2  flags -- tcp/ib0\n"
                  "#      resource 3  :  md 4  dev 12 flags a- ud_verbs/rxe0:1\n";
    flash_ucx_ways_t ways;

    flash_ucx_ways_read(text, &ways);
    ok(strcmp(ways.tcp_devices, "eth0,ib0") == 0, "the devices by TCP");
    chooses("all, where nothing is said of them", "eth0,ib0", NULL, "eth0,ib0");
    chooses("those that both lists have", "lo,eth0,eth01,ib0", "ib0,eth0,eth1", "eth0,ib0");
    chooses("all, where the lists have none in common", "eth0,ib0", "eth00,ib", "eth0,ib0");
}

static void others(void)
{
    char text[TEXT_MAX] = "";
    flash_ucx_ways_t ways;

    reads("nothing", "", false, false, "");
    reads("what UCX does not print", "tcp\n#\nlane[0]\n# lane[0]: cm rdmacm\n# resource x\n", false,
          false, "");
    for (int k = 0; k < 50; k++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "# lane[%d]: %d:tcp/a_long_name%d.0 md[0]\n", k, k, k);
    }
    flash_ucx_ways_read(text, &ways);
    ok(ways.tcp && !ways.faster && strlen(ways.names) < FLASH_UCX_WAYS_MAX &&
           strstr(ways.names, "tcp (a_long_name5)") != NULL,
       "more names than there is room for");
}

int main(void)
{
    endpoints();
    contexts();
    devices();
    others();
    return tap_done();
}
