/*
 * model_network.h: a network of simulated links with a clock of its own, as a transport of the ring
 * engine: discrete events instead of waiting.
 *
 * The places stand in a ring. A message leaves when those before it have left its place, takes the
 * link's time for its bytes and for being a message, arrives a latency and a random delay later, in
 * order, and is over for its sender a latency after the receiver has matched it
 * (flash_transport.h). No contents are moved. One thread.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MODEL_NETWORK_H
#define MODEL_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/flash_transport.h"

/* Seconds, and payload bytes a second. */
typedef struct model_link {
    double rate;
    double message; /* for each message, on top of its bytes */
    double latency;
    double jitter; /* the mean of an exponentially distributed delay */
} model_link_t;

typedef struct model_network model_network_t;

/* NULL if there is no memory. */
model_network_t *model_network_create(const model_link_t *link, uint32_t places, uint32_t seed);
void model_network_destroy(model_network_t *network);

/* What the engine at a place goes by; owned by the network. */
flash_transport_t *model_network_transport(model_network_t *network, uint32_t place);
flash_peer_t *model_network_peer(model_network_t *network, uint32_t place);

/* Seconds since the beginning. */
double model_network_now(const model_network_t *network);
/* Calls `event` so many seconds from now. */
void model_network_after(model_network_t *network, double seconds, void (*event)(void *arg),
                         void *arg);
/* The next event: lets time pass until it, and has it happen. False if there is none. */
bool model_network_step(model_network_t *network);

/* That a place has sent. */
uint64_t model_network_messages(const model_network_t *network, uint32_t place);

#endif /* MODEL_NETWORK_H */
