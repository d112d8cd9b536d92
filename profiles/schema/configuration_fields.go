package schema

// Configuration returns the fields of KubeSchedulerConfiguration
// (staging/src/k8s.io/kube-scheduler/config/<api>/types.go).
func Configuration() Object {
	return Object{Fields: []Field{
		{Name: "apiVersion", Kind: kindString},
		{Name: "kind", Kind: kindString},
		{Name: "parallelism", Kind: kindInt, Bounded: true, Least: 1},
		{Name: "leaderElection", Kind: kindObject, Object: leaderElection},
		{Name: "clientConnection", Kind: kindObject, Object: clientConnection},
		{Name: "healthzBindAddress", Kind: kindString, APIs: InV1beta1 | InV1beta2},
		{Name: "metricsBindAddress", Kind: kindString, APIs: InV1beta1 | InV1beta2},
		{Name: "enableProfiling", Kind: kindBool},
		{Name: "enableContentionProfiling", Kind: kindBool},
		{Name: "percentageOfNodesToScore", Kind: kindInt, Bounded: true, Most: 100},
		{Name: "podInitialBackoffSeconds", Kind: kindInt64, Bounded: true, Least: 1},
		{Name: "podMaxBackoffSeconds", Kind: kindInt64, Bounded: true, Least: 1},
		{Name: "profiles", Kind: KindObjects, Object: profile},
		{Name: "extenders", Kind: KindObjects, Object: extender},
		{Name: "delayCacheUntilActive", Kind: kindBool, APIs: InV1, Since: 28,
			Lost: "a standby fills its cache immediately, which only costs memory"},
	}}
}

// leaderElection and clientConnection are types of component-base
// (staging/src/k8s.io/component-base/config/v1alpha1/types.go).
func leaderElection() Object {
	return Object{Fields: []Field{
		{Name: "leaderElect", Kind: kindBool},
		{Name: "leaseDuration", Kind: kindDuration},
		{Name: "renewDeadline", Kind: kindDuration},
		{Name: "retryPeriod", Kind: kindDuration},
		{Name: "resourceLock", Kind: kindString},
		{Name: "resourceName", Kind: kindString},
		{Name: "resourceNamespace", Kind: kindString},
	}}
}

func clientConnection() Object {
	return Object{Fields: []Field{
		{Name: "kubeconfig", Kind: kindString},
		{Name: "acceptContentTypes", Kind: kindString},
		{Name: "contentType", Kind: kindString},
		{Name: "qps", Kind: kindFloat},
		{Name: "burst", Kind: kindInt},
	}}
}

func profile() Object {
	return Object{Fields: []Field{
		{Name: "schedulerName", Kind: kindString},
		{Name: "percentageOfNodesToScore", Kind: kindInt, APIs: InV1, Since: 26, Bounded: true, Most: 100, Hoisted: true},
		{Name: "plugins", Kind: kindObject, Object: pluginsObject},
		{Name: "pluginConfig", Kind: KindObjects, Object: pluginConfig},
	}}
}

// pluginsObject has one plugin set for each extension point.
func pluginsObject() Object {
	var o Object
	for _, p := range ExtensionPoints() {
		o.Fields = append(o.Fields, Field{Name: p.Name, Kind: kindObject, Object: pluginSet, APIs: p.APIs, Since: p.Since})
	}
	return o
}

// ExtensionPoint is an extension point, or multiPoint, which enables plugins at all of them.
type ExtensionPoint struct {
	Name  string
	APIs  APISet
	Since int
}

// Extension points that rules refer to.
const (
	MultiPoint = "multiPoint"
	// One plugin sorts the queue; the first bind plugin that does not skip a pod binds it.
	PointQueueSort = "queueSort"
	PointBind      = "bind"
)

// ExtensionPoints returns the extension points in the order of a scheduling cycle.
func ExtensionPoints() []ExtensionPoint {
	return []ExtensionPoint{
		{Name: "preEnqueue", APIs: InV1beta2 | inV1beta3 | InV1, Since: 26},
		{Name: "queueSort"}, {Name: "preFilter"}, {Name: "filter"}, {Name: "postFilter"},
		{Name: "preScore"}, {Name: "score"}, {Name: "reserve"}, {Name: "permit"},
		{Name: "preBind"}, {Name: "bind"}, {Name: "postBind"},
		{Name: "multiPoint", APIs: InV1beta2 | inV1beta3 | InV1, Since: 23},
		{Name: "placementGenerate", APIs: InV1, Since: 36},
		{Name: "placementScore", APIs: InV1, Since: 36},
		{Name: "podGroupPostFilter", APIs: InV1, Since: 37},
	}
}

func pluginSet() Object {
	return Object{Fields: []Field{
		{Name: "enabled", Kind: KindObjects, Object: plugin},
		{Name: "disabled", Kind: KindObjects, Object: disabledPlugin},
	}}
}

func plugin() Object {
	return Object{Fields: []Field{
		{Name: "name", Kind: kindString, Required: true},
		{Name: "weight", Kind: kindInt},
	}}
}

func disabledPlugin() Object {
	return Object{Also: checkDisabled, Fields: []Field{
		{Name: "name", Kind: kindString}, {Name: "weight", Kind: kindInt},
	}}
}

// pluginConfig returns the fields of a pluginConfig element. For its args see KnownArgs.
func pluginConfig() Object {
	return Object{Also: checkArgs, Fields: []Field{
		{Name: "name", Kind: kindString},
		{Name: "args", Kind: kindAny},
	}}
}

// extender is the same in every config API.
func extender() Object {
	return Object{Fields: []Field{
		{Name: "urlPrefix", Kind: kindString},
		{Name: "filterVerb", Kind: kindString},
		{Name: "preemptVerb", Kind: kindString},
		{Name: "prioritizeVerb", Kind: kindString},
		{Name: "weight", Kind: kindInt64},
		{Name: "bindVerb", Kind: kindString},
		{Name: "enableHTTPS", Kind: kindBool},
		{Name: "tlsConfig", Kind: kindObject, Object: extenderTLS},
		{Name: "httpTimeout", Kind: kindDuration},
		{Name: "nodeCacheCapable", Kind: kindBool},
		{Name: "managedResources", Kind: KindObjects, Object: managedResource},
		{Name: "ignorable", Kind: kindBool},
	}}
}

func extenderTLS() Object {
	o := Object{Fields: []Field{{Name: "insecure", Kind: kindBool}}}
	for _, name := range []string{"serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"} {
		o.Fields = append(o.Fields, Field{Name: name, Kind: kindString})
	}
	return o
}

func managedResource() Object {
	return Object{Fields: []Field{
		{Name: "name", Kind: kindString},
		{Name: "ignoredByScheduler", Kind: kindBool},
	}}
}
