// Package image makes container images without a container engine and puts
// them where they are needed.
//
// [Build] lays files (the kube-scheduler) on a base and gives a [Built], which
// [WriteArchive], [WriteLayout], [Push], [LoadContainerd] and [LoadDocker] take
// to a docker archive, an OCI layout, a registry, containerd or Docker.
// [ExtractFile] goes the other way: it reads one file out of an image.
//
// The same input gives the same digest: names are sorted, times, owners and
// modes are fixed, and nothing of the machine that builds is recorded.
//
// Errors that come from what the caller was given (a name, a file, a platform)
// have a method Invalid that returns true; where there is something to try,
// errors have a method Hint.
package image

import (
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// SchedulerPath is where the kube-scheduler lies in an image. It is the path
	// that upstream's own image uses.
	SchedulerPath = "/usr/local/bin/kube-scheduler"
	// ExtenderPath is where pmk-extender lies in an image of its own.
	ExtenderPath = "/usr/local/bin/pmk-extender"
	// DefaultUser is the user and group of an image whose Options name none:
	// "nonroot" of the busybox base, and of many others.
	DefaultUser = "65532:65532"
	// DefaultContainerdSocket is where containerd listens unless told otherwise.
	DefaultContainerdSocket = "/run/containerd/containerd.sock"
)

// Base says what an image is laid on: exactly one of Reference, Archive, Layout
// and Busybox is set. [ParseBase] makes one of what a person types.
type Base struct {
	// Reference names an image in a registry, such as "busybox".
	Reference string
	// Archive is a docker archive (what "docker save" writes, gzipped or not)
	// that holds one image.
	Archive string
	// Layout is an OCI layout folder, with one image for each platform.
	Layout string
	// Busybox is a static busybox binary. It is laid in at /bin/busybox with links
	// for its applets, users root, nobody and nonroot, and a /tmp.
	Busybox string
	// Insecure allows plain HTTP for Reference. Registries on a loopback address
	// are spoken to in plain HTTP without it.
	Insecure bool
}

// File is a file to lay into an image, owned by root.
type File struct {
	// Path is the absolute path in the image. The folders above it are made
	// real folders with mode 0755.
	Path string
	// Source is the file to read.
	Source string
	// Mode holds the permission bits; 0 means 0755.
	Mode int64
}

// Options is the input of [Build].
type Options struct {
	Base Base
	// Platforms to build for, such as "linux/amd64". Order and repetition do not
	// matter. Required.
	Platforms []string
	// Files to lay in, by platform: each of Platforms has an entry.
	Files map[string][]File
	// Entrypoint replaces the base's; its command is dropped with it. Empty keeps
	// both.
	Entrypoint []string
	// Env holds NAME=value pairs that are set over those of the base.
	Env []string
	// User is the user the image runs as, "65532:65532" style; empty means
	// DefaultUser.
	User string
	// Labels are added to those of the base. See [Description].
	Labels map[string]string
	// Annotations are set on each manifest and on the index.
	Annotations map[string]string
	// Created is the time the image claims to be made at; zero means the Unix
	// epoch, so that it does not depend on when it was built.
	Created time.Time
	// Keychain finds the credentials for Base.Reference; nil means none.
	Keychain authn.Keychain
}

// Built is an image that was made but not yet put anywhere.
//
// Layers of a base are read only when they are written. The base, and the
// context given to Build, have to last until then.
type Built struct {
	// Index lists the images of all platforms; nil if there is only one.
	Index v1.ImageIndex
	// Images holds the image of each platform.
	Images map[string]v1.Image
	// Digest names the index, or the only image: "sha256:…".
	Digest string
}
