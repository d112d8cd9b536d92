// Package image builds container images without a container engine, and writes, pushes and loads
// them.
//
// [Build] adds files (the kube-scheduler) to a base and returns a [Built], which [WriteArchive],
// [WriteLayout], [Push], [LoadContainerd] and [loadDocker] send to a docker archive, an OCI layout,
// a registry, containerd or Docker. [ExtractFile] reads one file of an image, [ExtractProgram] the
// scheduler.
//
// The same input gives the same digest: names are sorted, times, owners and modes are fixed, and no
// data of the machine is recorded.
//
// Errors about the input (a name, a file, a platform) are Invalid; see package problem.
package image

import (
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// SchedulerPath is the path of the kube-scheduler in an image, as in the upstream image.
	SchedulerPath = "/usr/local/bin/kube-scheduler"
	// ExtenderPath is the path of pmk-extender in its image.
	ExtenderPath = "/usr/local/bin/pmk-extender"
	// SelfPath is the path of pmk-sched in its image.
	SelfPath = "/usr/local/bin/pmk-sched"
	// DefaultUser is the default user and group of an image: "nonroot" in the busybox base and in many
	// others.
	DefaultUser = "65532:65532"
	// DefaultContainerdSocket is the default socket of containerd.
	DefaultContainerdSocket = "/run/containerd/containerd.sock"
)

// Base is an image's base. Exactly one of Reference, Archive, Layout and Busybox is set.
// [ParseBase] reads one from the command line.
type Base struct {
	// Reference names an image in a registry, such as "busybox".
	Reference string
	// Archive is a docker archive with one image, as "docker save" writes it, compressed or not.
	Archive string
	// Layout is an OCI layout directory with one image for each platform.
	Layout string
	// Busybox is a static busybox binary. The image has it at /bin/busybox, with links for its
	// applets, the users root, nobody and nonroot, and /tmp.
	Busybox string
	// Empty is a base without programs: the users root, nobody and nonroot, and /tmp.
	Empty bool
}

// File is a file to add to an image, owned by root.
type File struct {
	// Path is the absolute path in the image. Parent directories get the mode 0755.
	Path string
	// Source is the file to read.
	Source string
	// Mode is the permission bits. Defaults to 0755.
	Mode int64
}

// Options are the inputs of [Build].
type Options struct {
	Base Base
	// Platforms to build for, such as "linux/amd64", in any order. Required.
	Platforms []string
	// Files to add, by platform. Each of Platforms has an entry.
	Files map[string][]File
	// Entrypoint replaces the entrypoint and the command of the base. Empty keeps both.
	Entrypoint []string
	// Env is NAME=value pairs that override variables of the base.
	Env []string
	// User is the image's user, such as "65532:65532". Defaults to DefaultUser.
	User string
	// Labels are added to the base's labels. See [Description].
	Labels map[string]string
	// Annotations are set on each manifest and on the index.
	Annotations map[string]string
	// Keychain provides the credentials for Base.Reference. If it is nil, none are used.
	Keychain authn.Keychain
	// Bases is the directory in which [SaveBase] wrote bases, which are used instead of those in a
	// registry. It may be empty or missing.
	Bases string
}

// Built is an image that is not written anywhere yet.
//
// A base's layers are read when the image is written. The base and Build's context must be valid
// until then.
type Built struct {
	// Index is the index with the images for all platforms. It is nil if there is only one platform.
	Index v1.ImageIndex
	// Images maps platforms to images.
	Images map[string]v1.Image
	// Digest is the index's digest, or that of the only image: "sha256:…".
	Digest string
	// Base is the reference by digest of the base, NAME@sha256:…, which gives the same image again.
	// It is empty unless the base is in a registry.
	Base string
	// BaseDigest identifies the content of the base for the platforms: "sha256:…".
	BaseDigest string

	attached []*attachment
}

// Keys of the labels and annotations that describe an image. The first three are defined by OCI
// (image-spec, annotations.md); the Dockerfile sets the same keys.
const (
	LabelTitle   = "org.opencontainers.image.title"
	LabelVersion = "org.opencontainers.image.version"
	LabelSource  = "org.opencontainers.image.source"
	LabelRelease = "pmk-sched.io/release"
	LabelPlugins = "pmk-sched.io/plugins"
	LabelOrigin  = "pmk-sched.io/source"
)

// Annotation keys that name an image's base (image-spec, annotations.md).
const (
	annotationBaseName   = "org.opencontainers.image.base.name"
	annotationBaseDigest = "org.opencontainers.image.base.digest"
)

// Description describes the program in an image by labels.
type Description struct {
	Title   string // name of the program: kube-scheduler
	Version string // version of the image; by default the release
	URL     string // URL of the sources
	Release string // Kubernetes release: v1.24.3
	Plugins string // compiled-in plugins, separated by commas
	Origin  string // source: module with version, or git URL with commit
}

// Labels returns the labels for d, which are also used as annotations. It has all keys, including
// those with an empty value, like an image that the Dockerfile builds.
func (d Description) Labels() map[string]string {
	return map[string]string{
		LabelTitle:   d.Title,
		LabelVersion: d.Version,
		LabelSource:  d.URL,
		LabelRelease: d.Release,
		LabelPlugins: d.Plugins,
		LabelOrigin:  d.Origin,
	}
}
