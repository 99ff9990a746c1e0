/*
 * test_fake_transport.c: the fake transport keeps the contract that it checks others by.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "fake_transport.h"
#include "prng.h"
#include "tap.h"

#define MARKS UINT64_C(3)

/* A transfer that remembers its end. */
typedef struct probe {
    flash_transfer_t transfer; /* first */
    int calls, status;
    uint64_t tag;
    size_t length;
} probe_t;

static void probe_done(flash_transfer_t *transfer, int status, uint64_t tag, size_t length)
{
    probe_t *probe = (probe_t *) transfer;

    probe->calls++;
    probe->status = status;
    probe->tag = tag;
    probe->length = length;
}

static void put(fake_net_t *net, uint32_t from, uint32_t to, uint64_t tag, const void *buffer,
                size_t length, probe_t *probe)
{
    flash_transport_t *transport = fake_net_transport(net, from);

    *probe = (probe_t){.transfer.done = probe_done};
    transport->ops->send(transport, fake_net_peer(net, from, to), tag, buffer, length,
                         &probe->transfer);
}

static void get(fake_net_t *net, uint32_t rank, uint64_t tag, uint64_t mask, void *buffer,
                size_t length, probe_t *probe)
{
    flash_transport_t *transport = fake_net_transport(net, rank);

    *probe = (probe_t){.transfer.done = probe_done};
    transport->ops->recv(transport, fake_net_peer(net, rank, 0), tag, mask, buffer, length,
                         &probe->transfer);
}

static void settle(fake_net_t *net, uint32_t nranks)
{
    while (fake_net_pending(net) > 0) {
        for (uint32_t rank = 0; rank < nranks; rank++) {
            flash_transport_t *transport = fake_net_transport(net, rank);

            transport->ops->progress(transport);
        }
    }
}

static bool clean(fake_net_t *net)
{
    const char *first;
    bool good = fake_net_leftovers(net) == 0 && fake_net_violations(net, &first) == 0;

    fake_net_destroy(net);
    return good;
}

static const fake_options_t plain = {.burst = 4, .late_data = 50, .unordered = MARKS};

static void test_truncation(void)
{
    fake_net_t *net = fake_net_create(2, 1, &plain);
    char out[8] = "abcdefg", in[8] = "------!", canary = in[6];
    probe_t s, r;

    put(net, 0, 1, 4, out, 8, &s);
    get(net, 1, 4, ~MARKS, in, 6, &r);
    settle(net, 2);
    ok(r.calls == 1 && r.status == FLASH_ERR_TRUNCATED && r.tag == 4 && r.length == 6 &&
           in[6] == canary && s.calls == 1 && s.status == FLASH_OK && clean(net),
       "a message too long is cut, and says so");
}

static void test_cancel(void)
{
    fake_net_t *net = fake_net_create(2, 1, &plain);
    flash_transport_t *transport = fake_net_transport(net, 1);
    char in[4], out[4] = "xyz";
    probe_t s, r;

    get(net, 1, 4, ~MARKS, in, 4, &r);
    transport->ops->cancel(transport, &r.transfer);
    transport->ops->cancel(transport, &r.transfer); /* the second time changes nothing */
    settle(net, 2);
    ok(r.calls == 1 && r.status == FLASH_ERR_CANCELED, "a cancelled receive is done once");
    put(net, 0, 1, 4, out, 4, &s);
    settle(net, 2);
    ok(fake_net_leftovers(net) == 1, "its message is left over");
    get(net, 1, 4, ~MARKS, in, 4, &r);
    transport->ops->cancel(transport, &r.transfer);
    settle(net, 2);
    ok(r.calls == 1 && r.status == FLASH_OK && strcmp(in, "xyz") == 0 && clean(net),
       "cancelling after the match comes too late");
}

static void test_inline(void)
{
    fake_options_t options = {.inline_sends = 100, .inline_recvs = 100, .unordered = MARKS};
    fake_net_t *net = fake_net_create(2, 1, &options);
    flash_transport_t *transport = fake_net_transport(net, 1);
    char in[4], out[4] = "abc";
    probe_t s, r;

    ok(transport->ops->arm(transport) == FLASH_OK, "nothing to wait for");
    put(net, 0, 1, 4, out, 4, &s);
    ok(s.calls == 1 && transport->ops->arm(transport) == FLASH_BUSY, "an inline send is done");
    memset(out, 0, 4);
    settle(net, 2);
    get(net, 1, 4, ~MARKS, in, 4, &r);
    ok(r.calls == 1 && strcmp(in, "abc") == 0 && clean(net), "an inline receive is done");
}

static void test_rendezvous(void)
{
    fake_options_t options = {.rendezvous = 100};
    fake_net_t *net = fake_net_create(2, 1, &options);
    char in[4], out[4] = "abc";
    const char *first;
    unsigned changes;
    probe_t s, r;

    put(net, 0, 1, 4, out, 4, &s);
    settle(net, 2);
    ok(s.calls == 0, "a rendezvous waits for its receive");
    out[0] = 'x';
    get(net, 1, 4, ~MARKS, in, 4, &r);
    settle(net, 2);
    changes = fake_net_violations(net, &first);
    ok(s.calls == 1 && r.calls == 1 && changes > 0,
       "a buffer that changes under way is noticed (%s)", first);
    fake_net_destroy(net);
}

static void test_failures(void)
{
    for (fake_failure_t failure = FAKE_FAIL_SEND; failure <= FAKE_FAIL_RECV; failure++) {
        fake_options_t options = plain;
        char in[2][4], out[4] = "abc";
        probe_t s[2], r[2];
        fake_net_t *net;

        options.failure = failure;
        options.fail_rank = failure == FAKE_FAIL_RECV;
        options.fail_nth = 2;
        net = fake_net_create(2, 1, &options);
        for (int k = 0; k < 2; k++) {
            put(net, 0, 1, 4, out, 4, &s[k]);
            get(net, 1, 4, ~MARKS, in[k], 4, &r[k]);
        }
        settle(net, 2);
        ok(s[0].status == FLASH_OK && r[0].status == FLASH_OK && fake_net_failed(net) &&
               (failure == FAKE_FAIL_RECV ? r[1].status : s[1].status) == FLASH_ERR_TRANSPORT &&
               r[1].calls == (failure != FAKE_FAIL_SEND) &&
               fake_net_leftovers(net) == (failure == FAKE_FAIL_SEND),
           "failure of kind %d at the second call only", (int) failure);
        fake_net_destroy(net);
    }
}

static void test_loss(void)
{
    fake_net_t *net = fake_net_create(2, 1, &plain);
    char in[4], out[4] = "abc";
    probe_t before, after, send;

    get(net, 1, 4, ~MARKS, in, 4, &before);
    fake_net_lose(net, 1, 0);
    settle(net, 2);
    get(net, 1, 8, ~MARKS, in, 4, &after);
    put(net, 1, 0, 4, out, 4, &send);
    ok(before.status == FLASH_ERR_LOST && before.calls == 1 && after.status == FLASH_ERR_LOST &&
           after.calls == 1 && send.status == FLASH_ERR_LOST && send.calls == 1 && clean(net),
       "nothing waits for a lost peer");
}

#define SOAK 4000

/*
 * Many messages with few tags between three ranks, receives and sends in a random order: those of
 * one tag must come in order, and some of different tags must not.
 */
static void test_soak(uint64_t seed)
{
    static uint64_t out[SOAK], in[SOAK];
    static probe_t s[SOAK], r[SOAK];
    fake_options_t options = {.inline_sends = 30,
                              .rendezvous = 40,
                              .inline_recvs = 50,
                              .late_data = 50,
                              .lazy = 25,
                              .burst = 3,
                              .unordered = MARKS};
    fake_net_t *net = fake_net_create(3, seed, &options);
    uint32_t sent = 0, posted = 0, wrong = 0, bytes = 0;

    while (sent < SOAK || posted < SOAK) {
        uint32_t tag, rank = prng_below(&seed, 3);
        flash_transport_t *transport = fake_net_transport(net, rank);

        if (sent < SOAK && prng_percent(&seed, 50)) {
            tag = 4 * (sent % 5) + prng_below(&seed, 4);
            out[sent] = sent;
            put(net, 0, 1 + sent % 2, tag, &out[sent], sizeof(out[0]), &s[sent]);
            sent++;
        } else if (posted < SOAK) {
            tag = 4 * (posted % 5);
            get(net, 1 + posted % 2, tag, ~MARKS, &in[posted], sizeof(in[0]), &r[posted]);
            posted++;
        }
        transport->ops->progress(transport);
    }
    settle(net, 3);
    for (uint32_t k = 0; k < SOAK; k++) {
        wrong += in[k] != k || s[k].calls != 1 || r[k].calls != 1 || r[k].length != 8;
        bytes += 8;
    }
    ok(wrong == 0, "%u messages: equal tags in order", SOAK);
    ok(fake_net_stats(net, 0).messages == SOAK && fake_net_stats(net, 0).bytes == bytes &&
           fake_net_stats(net, 0).peers == 2 && fake_net_stats(net, 1).messages == 0,
       "messages, bytes and peers are counted");
    ok(clean(net), "nothing is left over");
}

static void test_overtaking(void)
{
    unsigned overtaken = 0;

    for (uint64_t seed = 0; seed < 64; seed++) {
        fake_net_t *net = fake_net_create(2, seed, &plain);
        char in, out = 1;
        probe_t s[2], r;

        put(net, 0, 1, 4, &out, 1, &s[0]);
        put(net, 0, 1, 8, &out, 1, &s[1]);
        get(net, 1, 0, 0, &in, 1, &r);
        settle(net, 2);
        overtaken += r.tag == 8;
        fake_net_destroy(net);
    }
    ok(overtaken > 0 && overtaken < 64, "different tags overtake each other (%u of 64)", overtaken);
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    test_truncation();
    test_cancel();
    test_inline();
    test_rendezvous();
    test_failures();
    test_loss();
    test_soak(seed);
    test_overtaking();
    return tap_done();
}
