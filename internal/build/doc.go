// Package build compiles the programs of one Kubernetes release, and the mains
// of ordinary Go modules, into static binaries. It is the only package that runs
// the go command.
//
// The source of a release is its Go module: a generated module requires
// k8s.io/kubernetes at the release, pins every staging module to the version
// published with it, carries the release's own replace pins, go.sum and godebug
// settings, and is compiled with the version of Go that the release names. The
// environment of every go command is made here from the one that was passed in,
// so that a person's GOFLAGS, GOWORK, GOOS and so on do not reach the result.
//
// Everything that decides the bytes of a binary is hashed before a compiler is
// started. The hash is the name of the binary's folder in the cache, so a second
// identical build is a look into a folder, and two folders or machines come to
// the same bytes.
package build
