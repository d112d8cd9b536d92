package image

// Keys of the labels and annotations that describe an image. The first three
// are OCI's (image-spec, annotations.md); the Dockerfile sets the same.
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

// Description is what the labels of an image tell about the program in it.
type Description struct {
	Title   string // name of the program: kube-scheduler
	Version string // version of the image; the release unless the caller has a better one
	URL     string // where the sources can be read
	Release string // Kubernetes release it was built from: v1.24.3
	Plugins string // compiled-in plugins, separated by commas; empty for none
	Origin  string // what was compiled: module with version, or git URL with commit
}

// Labels returns the labels for d; they serve as annotations too. All keys are
// there, also those with an empty value, as they are in an image that the
// Dockerfile made.
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
