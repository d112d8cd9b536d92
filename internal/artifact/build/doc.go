// Package build compiles the programs of a Kubernetes release, and the main packages of other Go modules,
// into static binaries. It is the only package that runs the go command.
//
// The source of a release is its Go module. A generated module requires k8s.io/kubernetes at the
// release, pins every staging module to the version that was published with it, copies the
// release's own replace directives, go.sum and godebug settings, and is compiled with the version
// of Go that the release names. Every go command gets an environment that is derived from the given
// one, so that the user's GOFLAGS, GOWORK, GOOS and so on do not change the result.
//
// Everything that decides the bytes of a binary is hashed before a compiler starts. The hash is the name
// of the binary's directory in the build cache: a second identical build only reads the cache, and
// different directories and machines produce the same bytes.
//
// [Run] reads the release (source.go), generates its module (generate.go), looks for the binaries
// in the cache (cachekey.go, cache.go), and compiles missing binaries (compile.go).
package build
