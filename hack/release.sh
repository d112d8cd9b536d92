#!/usr/bin/env bash
# Writes the files of release VERSION to dist/. The same commit, VERSION and Go give the same bytes, in
# any directory and for any user. It needs no secret: .github/workflows/release.yml signs and pushes.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
[[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || {
	echo "invalid VERSION \"$VERSION\": must be like v0.1.0" >&2
	exit 2
}
export VERSION SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export LC_ALL=C GOFLAGS='-buildvcs=false -trimpath' CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT=
go=$(go env GOVERSION)
STAGE=$(mktemp -d)
export STAGE
trap 'rm -rf "$STAGE"' EXIT
rm -rf dist
mkdir -p dist "$STAGE"/{completion,man.gz}

for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	programs=(./cmd/pmk-sched ./cmd/pmk-extender)
	[[ $platform != linux/* ]] || programs+=(./cmd/pmk-lab)
	GOOS=${platform%/*} GOARCH=${platform#*/} go build -ldflags "-s -w -X main.version=$VERSION" \
		-o "$STAGE/${platform/\//_}/" "${programs[@]}"
done

# Go for the image with it is the version that compiles the release.
for arch in amd64 arm64; do
	dir=$(go mod download -json "golang.org/toolchain@v0.0.1-$go.linux-$arch" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
	ln -s "$dir" "$STAGE/linux_$arch/go"
done

cp LICENSE "$STAGE/"
programs=$STAGE/$(go env GOHOSTOS)_$(go env GOHOSTARCH)
program=$programs/pmk-sched
"$program" man "$STAGE/man"
[ ! -e "$programs/pmk-lab" ] || "$programs/pmk-lab" man "$STAGE/man"
for page in "$STAGE"/man/*; do gzip -9n <"$page" >"$STAGE/man.gz/${page##*/}.gz"; done
"$program" completion bash >"$STAGE/completion/pmk-sched.bash"
"$program" completion zsh >"$STAGE/completion/_pmk-sched"
"$program" completion fish >"$STAGE/completion/pmk-sched.fish"

for arch in amd64 arm64; do
	for packager in deb rpm apk; do
		ARCH=$arch bin/nfpm package --config hack/release/nfpm.yaml --packager "$packager" --target dist/ >/dev/null
	done
done
go run ./hack/release -version "$VERSION" -stage "$STAGE"
cat dist/SHA256SUMS
