package extender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Values of apiVersion and kind in a configuration.
const (
	// ConfigurationAPIVersion is the field apiVersion.
	ConfigurationAPIVersion = "pmk-sched.io/v1alpha1"
	// ConfigurationKind is the field kind.
	ConfigurationKind = "Extender"
)

// Configuration is the file of pmk-extender's flag --config. Unknown and duplicate fields are
// errors.
type Configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Policies are called in this order.
	Policies []PolicyConfiguration `json:"policies"`
	// Verbs are the verbs to serve; filter, prioritize and preempt by default. bind requires
	// tls.clientCAFile.
	Verbs []string `json:"verbs,omitempty"`
	// Listen is the address to listen on, such as ":8443"; 127.0.0.1:8888 by default.
	Listen string `json:"listen,omitempty"`
	// TLS enables HTTPS.
	TLS TLSConfiguration `json:"tls,omitzero"`
	// NodeCacheCapable refuses requests with whole nodes, as schedulers send them unless they set the
	// field of the same name.
	NodeCacheCapable bool `json:"nodeCacheCapable,omitempty"`
	// MaxBodyBytes is the maximum size of a request body. By default, it follows from the cluster's
	// node count.
	MaxBodyBytes int64 `json:"maxBodyBytes,omitempty"`
}

// PolicyConfiguration is one policy.
type PolicyConfiguration struct {
	// Name is the plugin's name, such as LoadAware; case does not matter.
	Name string `json:"name"`
	// Weight is the weight of its scores relative to other policies; 1 by default.
	Weight int64 `json:"weight,omitempty"`
	// Args are the plugin's arguments, as under pluginConfig of a scheduler configuration.
	Args Arguments `json:"args,omitzero"`
}

// TLSConfiguration are an HTTPS server's files. They are read again when they change.
type TLSConfiguration struct {
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ClientCAFile holds the CAs of client certificates; if set, verbs require a client
	// certificate, except for AnonymousVerbs.
	ClientCAFile   string   `json:"clientCAFile,omitempty"`
	AnonymousVerbs []string `json:"anonymousVerbs,omitempty"`
}

// ParseConfiguration parses a configuration, as YAML or JSON. Its errors implement Invalid.
func ParseConfiguration(text []byte) (*Configuration, error) {
	c := &Configuration{}
	// The decoder of plugin arguments is strict.
	if err := scheduler.NewArguments(text).Decode(c); err != nil {
		return nil, &optionError{strings.TrimPrefix(err.Error(), "read the plugin's arguments: ")}
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// Validate checks everything but the policies' arguments. Its errors implement Invalid.
func (c *Configuration) Validate() error {
	if err := errors.Join(checkVerbs(c.Verbs), checkVerbs(c.TLS.AnonymousVerbs)); err != nil {
		return &optionError{err.Error()}
	}
	switch {
	case c.APIVersion != ConfigurationAPIVersion || c.Kind != ConfigurationKind:
		return &optionError{fmt.Sprintf("apiVersion %q, kind %q: expected %s, %s", c.APIVersion, c.Kind,
			ConfigurationAPIVersion, ConfigurationKind)}
	case c.MaxBodyBytes < 0:
		return &optionError{fmt.Sprintf("invalid maxBodyBytes %d: must be at least 0", c.MaxBodyBytes)}
	case (c.TLS.CertFile == "") != (c.TLS.KeyFile == ""):
		return &optionError{"tls: certFile and keyFile are both required"}
	case c.TLS.ClientCAFile != "" && c.TLS.CertFile == "":
		return &optionError{"tls.clientCAFile requires certFile and keyFile"}
	case slices.Contains(c.Verbs, VerbBind) && c.TLS.ClientCAFile == "":
		return &optionError{"verb bind requires tls.clientCAFile: every client that reaches the address could bind pods"}
	case slices.Contains(c.TLS.AnonymousVerbs, VerbBind):
		return &optionError{"tls.anonymousVerbs must not have bind: it always requires a client certificate"}
	}
	for i, p := range c.Policies {
		switch {
		case p.Name == "":
			return &optionError{fmt.Sprintf("policies[%d].name is required", i)}
		case p.Weight < 0 || p.Weight > MaxWeight:
			return &optionError{fmt.Sprintf("policies[%d].weight: %d is not between 1 and %d", i, p.Weight, MaxWeight)}
		}
	}
	return nil
}

// YAML returns the configuration as YAML.
func (c *Configuration) YAML() ([]byte, error) { return yaml.Marshal(c) }

// Registration is a plugin that a program can serve as a policy.
type Registration struct {
	// Name is the plugin's constant Name.
	Name string
	// New creates the plugin.
	New func(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (scheduler.Plugin, error)
}

// Register returns a Registration for a plugin's constant Name and function New.
func Register[P scheduler.Plugin](name string,
	make func(context.Context, scheduler.Arguments, scheduler.Handle) (P, error)) Registration {
	return Registration{Name: name,
		New: func(ctx context.Context, args scheduler.Arguments, h scheduler.Handle) (scheduler.Plugin, error) {
			p, err := make(ctx, args, h)
			if err != nil {
				return nil, err
			}
			return p, nil
		}}
}

// MakePolicies creates a configuration's policies from the registered plugins. An error from a
// plugin's New is reported as an error in its arguments.
func MakePolicies(ctx context.Context, configured []PolicyConfiguration, registered []Registration,
	h *Handle) ([]Policy, error) {
	var policies []Policy
	for _, c := range configured {
		i := slices.IndexFunc(registered, func(r Registration) bool { return strings.EqualFold(r.Name, c.Name) })
		if i < 0 {
			var names []string
			for _, r := range registered {
				names = append(names, r.Name)
			}
			return nil, &optionError{fmt.Sprintf("unknown policy %s: this extender has %s", c.Name, strings.Join(names, ", "))}
		}
		plugin, err := registered[i].New(ctx, c.Args.ForPlugin(), h)
		if err != nil {
			return nil, &optionError{fmt.Sprintf("policy %s: %s", registered[i].Name, err)}
		}
		policies = append(policies, Policy{Name: registered[i].Name, Plugin: plugin, Weight: c.Weight})
	}
	return policies, nil
}

// Arguments are a policy's arguments, undecoded.
type Arguments struct{ raw json.RawMessage }

// NewArguments returns the Arguments in a JSON document.
func NewArguments(document []byte) Arguments { return Arguments{raw: document} }

// UnmarshalJSON implements json.Unmarshaler. The policy decodes the arguments, strictly.
func (a *Arguments) UnmarshalJSON(document []byte) error {
	a.raw = append(a.raw[:0], document...)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (a Arguments) MarshalJSON() ([]byte, error) {
	if len(a.raw) == 0 {
		return []byte("null"), nil
	}
	return a.raw, nil
}

// ForPlugin returns the arguments in the form that a plugin's New accepts.
func (a Arguments) ForPlugin() scheduler.Arguments { return scheduler.NewArguments(a.raw) }
