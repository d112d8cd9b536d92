package schema

import (
	"time"
)

// DefaultExtenderTimeout is how long a scheduler waits for an extender's answer
// where nobody says. The scheduler's own default, 5 s
// (pkg/scheduler/extender.go), is what a hanging extender would cost every pod.
const DefaultExtenderTimeout = time.Second

// Extender is an HTTP service that the scheduler asks about every pod, and what
// it is asked: one element of extenders in a configuration. [Render] writes it
// for the config API that the release reads.
type Extender struct {
	// Name is what messages call it; it stands in the rendered configuration as a
	// comment only.
	Name string
	// URLPrefix is the address without the verb: https://host:port/path.
	URLPrefix string
	// Verbs are appended to URLPrefix. An empty one is not asked for; one at least
	// is needed.
	FilterVerb, PrioritizeVerb, PreemptVerb, BindVerb string
	// Weight multiplies the scores, 0 to 10 each, that prioritize answers with; it
	// belongs to PrioritizeVerb, and is above 0 then.
	Weight int64
	// EnableHTTPS has the scheduler use TLS, as TLS says. Without a CA there it
	// would take any certificate, which is refused unless TLS.Insecure says so.
	EnableHTTPS bool
	TLS         *ExtenderTLS
	// HTTPTimeout is for each call; 0 is [DefaultExtenderTimeout].
	HTTPTimeout time.Duration
	// NodeCacheCapable says that the extender knows the nodes itself, so that the
	// scheduler sends their names only. Nil is true.
	NodeCacheCapable *bool
	// ManagedResources limit the extender to pods that request one of them. None:
	// it is asked about every pod.
	ManagedResources []ManagedResource
	// Ignorable says whether pods are scheduled without the extender where it does
	// not answer. Nil is refused: neither is right for everyone.
	Ignorable *bool
}

// ExtenderTLS says how the scheduler and an extender prove who they are.
type ExtenderTLS struct {
	// Insecure takes any certificate.
	Insecure bool
	// ServerName is the name that the certificate is checked against, and sent with
	// SNI. Empty: the host of the URL.
	ServerName string
	// CAFile is the path, as the scheduler's process sees it, of the certificates
	// that the extender's has to be signed by; CAData are those certificates, PEM.
	// Give one of the two.
	CAFile string
	CAData []byte
	// CertFile and KeyFile are the paths, as the scheduler's process sees them, of
	// the certificate and key that the scheduler shows. Both or none.
	CertFile, KeyFile string
}

// ManagedResource is an extended resource that an extender cares for.
type ManagedResource struct {
	// Name is that of the resource, example.com/gpu.
	Name string
	// IgnoredByScheduler has the scheduler leave the resource to the extender, where
	// it would check that it fits else.
	IgnoredByScheduler bool
}
