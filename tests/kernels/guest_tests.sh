# SPDX-License-Identifier: BSL-1.0
# Runs in the guest: each test file by itself, with a limit. Lines of the result begin with "@".
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
. /tmp/selection  # build, limit, files
echo "@kernel $(uname -r)"
for file in $files; do
    folder=${file%%/*} stem=${file##*/}
    # Into a file, because processes that are left would hold a pipe open.
    setsid timeout -k 10 "$limit" "$build/${folder}_tests" "-tc=${stem//_/ }: *" >/tmp/said 2>&1 </dev/null
    status=$?
    said=$(cat /tmp/said)
    counts=$(grep -ao '\[cases\] .*' <<<"$said" | tail -1)  # behind what a forked copy has printed
    echo "@file $file $status ${counts:-no counts}"
    [ "$status" = 0 ] || tail -n 40 <<<"$said"
done
echo "@end"
