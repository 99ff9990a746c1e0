# generate-needs.awk: what a large job needs of RDMA devices: see docs/generate.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

# The number that a source defines, in bytes if it is a size.
function number_in(path, name, line, parts) {
    while ((getline line <path) > 0) {
        if (line ~ "^#define " name " ") {
            sub("^#define " name " +", "", line)
            sub(/ *\/\*.*/, "", line)
            gsub(/\(\(?size_t\)|[()]/, "", line)
            close(path)
            return split(line, parts, "<<") == 2 ? parts[1] * 2 ^ parts[2] : line + 0
        }
    }
    stop(path " has no " name)
}

function with_commas(number, text) {
    text = sprintf("%d", number)
    while (match(text, /[0-9][0-9][0-9][0-9](,|$)/)) {
        text = substr(text, 1, RSTART) "," substr(text, RSTART + 1)
    }
    return text
}

function need_row(what, rings, exchanges) {
    print "| " what " | " rings " | " exchanges " |"
    found++
}

# needs RANKS RANKS-OF-A-NODE
function needs(ranks, node, plugin, window, segment, most, ring, limit, peers, shared, scratch) {
    plugin = sources
    sub(/[^\/]*$/, "ucx_backend/flash_ucx_internal.h", plugin)
    ring = number_in(plugin, "FLASH_UCX_RING_ENDPOINTS")
    limit = number_in(plugin, "FLASH_UCX_RC_ENDPOINTS")
    most = 2 ^ number_in(sources "/engine/flash_engine.h", "FLASH_TAG_STEP_BITS") - 1
    segment = number_in(sources "/engine/flash_schedule.h", "FLASH_USUAL_SEGMENT")
    window = defaults["segment_window"]
    peers = (ranks - 1 < most) ? ranks - 1 : most
    shared = (peers > limit)
    print "| " with_commas(ranks) " ranks, " node " to a node | rings | exchanges with all ranks |"
    print "| --- | --- | --- |"
    need_row("endpoints that UCX is peers of", ring, with_commas(peers))
    need_row("most endpoints of a process", ring " for each order of ranks", with_commas(peers))
    need_row("queue pairs for these, of a process", ring " (RC)", (shared ? "8 (DC), or 1 (UD)" : peers " (RC)"))
    need_row("of a node", with_commas(ring * node), (shared ? with_commas(8 * node) " (DC), or " node " (UD)" : with_commas(peers * node)))
    need_row("if exchanges went by the context of rings, of a node", "", with_commas(peers * node) " (RC)")
    need_row("most memory regions of an operation in flight, of a process", window, window)
    need_row("their memory, of a process", size_of(window " * " segment), size_of(window " * " segment))
    need_row("of a node", size_of(window * node " * " segment), size_of(window * node " * " segment))
    scratch = window * segment * number_in(sources "/engine/flash_pool.h", "FLASH_POOL_KEPT")
    need_row("scratch of reductions that stays registered, of a process", size_of(scratch " * 1"), "")
    need_row("of a node", size_of(scratch * node " * 1"), "")
}
