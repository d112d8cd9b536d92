package extender

// Where a configuration says what it is.
const (
	// ConfigurationAPIVersion is the field apiVersion.
	ConfigurationAPIVersion = "pmk-sched.io/v1alpha1"
	// ConfigurationKind is the field kind.
	ConfigurationKind = "Extender"
)

// Configuration is the file of pmk-extender's flag --config. Unknown and duplicate fields are errors.
type Configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Policies are served in this order.
	Policies []PolicyConfiguration `json:"policies"`
	// Listen is the address to serve at, such as ":8443"; 127.0.0.1:8888 by default.
	Listen string `json:"listen,omitempty"`
	// TLS makes the server speak HTTPS.
	TLS TLSConfiguration `json:"tls,omitempty"`
	// MaxBodyBytes is the largest request that is read; 128 MiB by default.
	MaxBodyBytes int64 `json:"maxBodyBytes,omitempty"`
}

// PolicyConfiguration is one policy.
type PolicyConfiguration struct {
	// Name is the plugin's name, such as LoadAware; case does not matter.
	Name string `json:"name"`
	// Weight is what its scores count beside those of other policies; 1 by default.
	Weight int64 `json:"weight,omitempty"`
	// Args are the plugin's arguments, the same as under pluginConfig of a scheduler's configuration.
	Args Arguments `json:"args,omitempty"`
}

// TLSConfiguration names the files of a server with HTTPS. They are read anew when they change.
type TLSConfiguration struct {
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ClientCAFile holds the authorities of clients' certificates; with it, verbs need a client certificate.
	ClientCAFile string `json:"clientCAFile,omitempty"`
}
