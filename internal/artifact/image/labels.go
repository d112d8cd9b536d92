package image

// Keys of the labels and annotations that describe an image. The first three are defined by OCI (image-spec,
// annotations.md); the Dockerfile sets the same keys.
const (
	LabelTitle   = "org.opencontainers.image.title"
	LabelVersion = "org.opencontainers.image.version"
	LabelSource  = "org.opencontainers.image.source"
	LabelRelease = "pmk-sched.io/release"
	LabelPlugins = "pmk-sched.io/plugins"
	LabelOrigin  = "pmk-sched.io/source"
)

// Keys of the annotations that name the base of an image (image-spec, annotations.md).
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

// Labels returns the labels for d, which are also used as annotations. It has all keys, including those with
// an empty value, like an image that the Dockerfile builds.
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
