package main

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// extenderEntry is one element of spec.extenders: a service that is there already,
// at urlPrefix; or, without urlPrefix, one that pmk-sched deploys with the
// scheduler.
type extenderEntry struct {
	Name             string                 `yaml:"name"`
	URLPrefix        string                 `yaml:"urlPrefix"`
	FilterVerb       string                 `yaml:"filterVerb"`
	PrioritizeVerb   string                 `yaml:"prioritizeVerb"`
	PreemptVerb      string                 `yaml:"preemptVerb"`
	BindVerb         string                 `yaml:"bindVerb"`
	Weight           int64                  `yaml:"weight"`
	EnableHTTPS      *bool                  `yaml:"enableHTTPS"`
	TLSConfig        *extenderTLSEntry      `yaml:"tlsConfig"`
	HTTPTimeout      duration               `yaml:"httpTimeout"`
	NodeCacheCapable *bool                  `yaml:"nodeCacheCapable"`
	ManagedResources []managedResourceEntry `yaml:"managedResources"`
	Ignorable        *bool                  `yaml:"ignorable"`

	// What pmk-sched deploys: only without urlPrefix.
	Image    string        `yaml:"image"`
	Policies []policyEntry `yaml:"policies"`
	Replicas autoInt       `yaml:"replicas"`
	Sidecar  bool          `yaml:"sidecar"`
}

// extenderTLSEntry names files of the person's, relative to pmk-sched.yaml: what
// is in them goes into the cluster.
type extenderTLSEntry struct {
	Insecure   bool   `yaml:"insecure"`
	ServerName string `yaml:"serverName"`
	// CA is a file with certificates, or "auto": a CA that pmk-sched makes for an
	// extender that it deploys.
	CA       string `yaml:"ca"`
	CertFile string `yaml:"certFile"`
	KeyFile  string `yaml:"keyFile"`
}

// caAuto is the value of tlsConfig.ca for a CA that pmk-sched makes.
const caAuto = "auto"

type managedResourceEntry struct {
	Name               string `yaml:"name"`
	IgnoredByScheduler bool   `yaml:"ignoredByScheduler"`
}

// policyEntry is one policy that a deployed extender serves, with its arguments as
// pmk-extender's --config has them.
type policyEntry struct {
	Name   string    `yaml:"name"`
	Weight int64     `yaml:"weight"`
	Args   yaml.Node `yaml:"args"`
}

// duration is a length of time such as 500ms.
type duration time.Duration

// deployed says whether pmk-sched deploys the extender.
func (e extenderEntry) deployed() bool { return e.URLPrefix == "" }
