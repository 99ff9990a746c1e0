# generate-gpu-runs.awk: reads what tests/gpu/run.sh printed, for generate-gpu.awk: see docs/generate.
#
# Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.

function trim(text) { gsub(/^ +| +$/, "", text); return text }

# texts[run, step, 1...lengths[run, step]]: the lines of a step; verdicts[run, step]: how it ended.
function read_runs(paths, k, line, step) {
    if (run_count) {
        return
    }
    run_count = split(runs, paths, " ")
    for (k = 1; k <= run_count; k++) {
        step = "before"
        files[k] = paths[k]
        sub(/.*\//, "", files[k])
        while ((getline line <paths[k]) > 0) {
            if (line ~ /^coll\/flash on /) {
                begun[k] = line
                sub(/^coll\/flash on [^,]*, /, "", begun[k])
                sub(/ UTC.*/, "", begun[k])
            } else if (line ~ /^--- /) {
                step = substr(line, 5)
                if (!((step, "known") in lengths)) {
                    lengths[step, "known"] = 1
                    steps[++step_count] = step
                }
                lengths[k, step] = 0
            } else if (line ~ /^(ok|FAILED|SKIPPED|NOT RUN)  ?/) {
                take_verdict(k, line)
            } else if (line ~ /^[0-9]+ passed, [0-9]+ failed, /) {
                totals[k] = line
            } else {
                texts[k, step, ++lengths[k, step]] = line
            }
        }
        close(paths[k])
        if (!(k in begun)) {
            stop(paths[k] " has no heading of tests/gpu/run.sh")
        }
    }
}

function take_verdict(k, line, word, step) {
    word = line ~ /^ok/ ? "ok" : line ~ /^FAILED/ ? "**failed**" : line ~ /^SKIPPED/ ? "skipped" : "not run"
    sub(/^(ok|FAILED|SKIPPED|NOT RUN) +/, "", line)
    sub(/: (status [0-9]+, see details.txt|see above)$/, "", line)
    step = line
    sub(/[,:].*/, "", step)
    sub(/^[a-z]+/, "", line)
    sub(/^:/, ",", line)
    verdicts[k, step] = word line
}

# The value of `key: value` in a step, or the line that begins so.
function told(k, step, key, i) {
    for (i = 1; i <= lengths[k, step]; i++) {
        if (index(texts[k, step, i], key) == 1) {
            return trim(substr(texts[k, step, i], length(key) + 1))
        }
    }
    return ""
}

# What stands first in a step's lines and matches.
function matching(k, step, pattern, i) {
    for (i = 1; i <= lengths[k, step]; i++) {
        if (texts[k, step, i] ~ pattern) {
            return texts[k, step, i]
        }
    }
    return ""
}
