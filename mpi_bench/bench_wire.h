/*
 * bench_wire.h: what a link leaves for payload.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

/* IPv4 and TCP with timestamps inside the MTU; Ethernet's own header outside of it. */
enum { BENCH_IP_TCP_HEADERS = 52, BENCH_ETHERNET_HEADER = 14 };

/* Bytes per second, of a link that sends `rate` of them, headers included. */
static inline double bench_payload_rate(double rate, int mtu)
{
    return rate * (mtu - BENCH_IP_TCP_HEADERS) / (mtu + BENCH_ETHERNET_HEADER);
}

#endif /* BENCH_WIRE_H */
