package profiles

import "go.yaml.in/yaml/v3"

// kind is the form of a value.
type kind int

const (
	kindAny kind = iota
	kindString
	kindBool
	kindInt
	kindFloat
	kindDuration
	kindNanoseconds // a number of them
	kindObject
	kindObjects // a list of objects
	kindStrings // a list of strings
)

// object is a mapping with known fields, and what else is to be checked about it.
type object struct {
	fields []field
	also   func(p *problems, n *yaml.Node, a api, where string)
}

// field is one field of an object: where it exists, and what becomes of it where
// it does not.
type field struct {
	name   string
	kind   kind
	object func() object // for kindObject and kindObjects
	// apis are the config APIs that have the field; 0 means all.
	apis apiSet
	// since is the first minor whose config APIs have it; 0 means always.
	since int
	// lost says why the field can be left out where the target lacks it. Empty: it
	// cannot, and saying so is an error, unless a rule has taken it away before.
	lost string
	// least and most bound a number; most 0 means no upper bound.
	least, most int
	bounded     bool
	// required says that the object means nothing without the field.
	required bool
	// hoisted says that the field of an only profile can move to the top of the
	// document, where the target has it.
	hoisted bool
}

// in says whether the field exists in a config API: in any release, or as one
// minor reads it.
func (f field) in(a api) bool {
	return (f.apis == 0 || f.apis.has(a.set)) && (a.minor == 0 || a.minor >= f.since)
}

// configuration is KubeSchedulerConfiguration
// (staging/src/k8s.io/kube-scheduler/config/<api>/types.go).
func configuration() object {
	return object{fields: []field{
		{name: "apiVersion", kind: kindString},
		{name: "kind", kind: kindString},
		{name: "parallelism", kind: kindInt, bounded: true, least: 1},
		{name: "leaderElection", kind: kindObject, object: leaderElection},
		{name: "clientConnection", kind: kindObject, object: clientConnection},
		{name: "healthzBindAddress", kind: kindString, apis: inV1beta1 | inV1beta2},
		{name: "metricsBindAddress", kind: kindString, apis: inV1beta1 | inV1beta2},
		{name: "enableProfiling", kind: kindBool},
		{name: "enableContentionProfiling", kind: kindBool},
		{name: "percentageOfNodesToScore", kind: kindInt, bounded: true, most: 100},
		{name: "podInitialBackoffSeconds", kind: kindInt, bounded: true, least: 1},
		{name: "podMaxBackoffSeconds", kind: kindInt, bounded: true, least: 1},
		{name: "profiles", kind: kindObjects, object: profile},
		{name: "extenders", kind: kindObjects, object: extender},
		{name: "delayCacheUntilActive", kind: kindBool, apis: inV1, since: 28,
			lost: "a standby then fills its cache at once, which costs memory and nothing else"},
	}}
}

// leaderElection and clientConnection are component-base's
// (staging/src/k8s.io/component-base/config/v1alpha1/types.go).
func leaderElection() object {
	return object{fields: []field{
		{name: "leaderElect", kind: kindBool},
		{name: "leaseDuration", kind: kindDuration},
		{name: "renewDeadline", kind: kindDuration},
		{name: "retryPeriod", kind: kindDuration},
		{name: "resourceLock", kind: kindString},
		{name: "resourceName", kind: kindString},
		{name: "resourceNamespace", kind: kindString},
	}}
}

func clientConnection() object {
	return object{fields: []field{
		{name: "kubeconfig", kind: kindString},
		{name: "acceptContentTypes", kind: kindString},
		{name: "contentType", kind: kindString},
		{name: "qps", kind: kindFloat},
		{name: "burst", kind: kindInt},
	}}
}

func profile() object {
	return object{fields: []field{
		{name: "schedulerName", kind: kindString},
		{name: "percentageOfNodesToScore", kind: kindInt, apis: inV1, since: 26, bounded: true, most: 100, hoisted: true},
		{name: "plugins", kind: kindObject, object: pluginsObject},
		{name: "pluginConfig", kind: kindObjects, object: pluginConfig},
	}}
}

// pluginsObject holds one plugin set for each extension point. A set that the
// target lacks is judged by what it enables (see fitPoints), not here.
func pluginsObject() object {
	var o object
	for _, p := range points() {
		o.fields = append(o.fields, field{name: p.name, kind: kindObject, object: pluginSet, apis: p.apis, since: p.since})
	}
	return o
}

// point is an extension point, or multiPoint, which stands for all of them.
type point struct {
	name  string
	apis  apiSet
	since int
}

func points() []point {
	return []point{
		{name: "preEnqueue", apis: inV1beta2 | inV1beta3 | inV1, since: 26},
		{name: "queueSort"}, {name: "preFilter"}, {name: "filter"}, {name: "postFilter"},
		{name: "preScore"}, {name: "score"}, {name: "reserve"}, {name: "permit"},
		{name: "preBind"}, {name: "bind"}, {name: "postBind"},
		{name: "multiPoint", apis: inV1beta2 | inV1beta3 | inV1, since: 23},
		{name: "placementGenerate", apis: inV1, since: 36},
		{name: "placementScore", apis: inV1, since: 36},
		{name: "podGroupPostFilter", apis: inV1, since: 37},
	}
}

func pluginSet() object {
	return object{fields: []field{
		{name: "enabled", kind: kindObjects, object: plugin},
		{name: "disabled", kind: kindObjects, object: plugin},
	}}
}

func plugin() object {
	return object{fields: []field{
		{name: "name", kind: kindString, required: true},
		{name: "weight", kind: kindInt, bounded: true},
	}}
}

// pluginConfig has args of the plugin's own kind: see argsOf.
func pluginConfig() object {
	return object{also: checkArgs, fields: []field{
		{name: "name", kind: kindString, required: true},
		{name: "args", kind: kindAny},
	}}
}

// extender is the same in every config API.
func extender() object {
	return object{fields: []field{
		{name: "urlPrefix", kind: kindString, required: true},
		{name: "filterVerb", kind: kindString},
		{name: "preemptVerb", kind: kindString},
		{name: "prioritizeVerb", kind: kindString},
		{name: "weight", kind: kindInt, bounded: true},
		{name: "bindVerb", kind: kindString},
		{name: "enableHTTPS", kind: kindBool},
		{name: "tlsConfig", kind: kindObject, object: extenderTLS},
		{name: "httpTimeout", kind: kindDuration},
		{name: "nodeCacheCapable", kind: kindBool},
		{name: "managedResources", kind: kindObjects, object: managedResource},
		{name: "ignorable", kind: kindBool},
	}}
}

func extenderTLS() object {
	o := object{fields: []field{{name: "insecure", kind: kindBool}}}
	for _, name := range []string{"serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"} {
		o.fields = append(o.fields, field{name: name, kind: kindString})
	}
	return o
}

func managedResource() object {
	return object{fields: []field{
		{name: "name", kind: kindString},
		{name: "ignoredByScheduler", kind: kindBool},
	}}
}
