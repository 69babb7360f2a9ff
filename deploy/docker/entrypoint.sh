#!/bin/sh
# Lays out the image's checkout at $CURSUS_ROOT, a volume that outlives containers, then runs the command.
#
# What lies there belongs to the user: params.yaml and recipes that are there already stay, as do data/ and .cursus/. All else is
# brought up to the image whenever the image is another one.
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

# a driver of Ray must be a node of its cluster; one without processors computes nothing itself
if [ -n "${CURSUS_JOIN_RAY:-}" ]; then
  ray start --address "$CURSUS_JOIN_RAY" --num-cpus 0 --disable-usage-stats
fi
exec "$@"
