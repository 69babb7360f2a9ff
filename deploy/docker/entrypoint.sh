#!/bin/sh
# Copies the image's checkout to $CURSUS_ROOT, a volume that outlives containers, then runs the command.
#
# The user's files are kept: existing params.yaml and recipes, data/ and .cursus/. Everything else is updated whenever
# the image changes.
set -eu
image=${CURSUS_IMAGE:-/opt/cursus}
root=${CURSUS_ROOT:?say where the checkout is to be}

if [ "$root" != "$image" ]; then
  mkdir -p "$root"
  stamp=$(cd "$image" && find . -type f ! -path './data/*' ! -name '*.pyc' -exec cksum {} + | sort | cksum)
  if [ "$(cat "$root/.image" 2>/dev/null)" != "$stamp" ]; then
    tar -C "$image" --exclude=./params.yaml --exclude=./recipes -cf - . | tar -C "$root" -xf -
    mkdir -p "$root/recipes"
    (cd "$image" && ls params.yaml recipes/*) | while read -r file; do
      [ -e "$root/$file" ] || cp "$image/$file" "$root/$file"
    done
    echo "$stamp" > "$root/.image"
  fi
  cd "$root"
fi

# a Ray driver must run on a node of the cluster; a node without CPUs gets no tasks
if [ -n "${CURSUS_JOIN_RAY:-}" ]; then
  ray start --address "$CURSUS_JOIN_RAY" --num-cpus 0 --disable-usage-stats
fi
exec "$@"
