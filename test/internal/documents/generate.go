package documents

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"sigs.k8s.io/yaml"
)

// Generate makes a configuration at random that a minor reads in the given config API. The same
// arguments give the same document. The document contains only fields of the schema
// (staging/src/k8s.io/kube-scheduler/config/<api>) with values that pass the validation, and that
// every other config API of that minor can express too.
func Generate(api string, minor int, seed uint64) Document {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(minor))), api: api, minor: minor}
	config := object{"apiVersion": "kubescheduler.config.k8s.io/" + api, "kind": "KubeSchedulerConfiguration"}
	g.settings(config)
	g.some(config, "clientConnection", g.client)
	g.some(config, "leaderElection", g.election)
	g.some(config, "extenders", g.extenders)
	g.some(config, "profiles", g.profiles)
	text, err := yaml.Marshal(config)
	if err != nil {
		panic(err) // maps, slices, strings and numbers always encode
	}
	return Document{Name: fmt.Sprintf("generated %s of 1.%d with seed %d", api, minor, seed), API: api, Text: text}
}

type object map[string]any

type generator struct {
	*rand.Rand
	api   string
	minor int
}

// chance is true n times of ten.
func (g *generator) chance(n int) bool { return g.IntN(10) < n }

// between returns a number from low to high, both included.
func (g *generator) between(low, high int) int { return low + g.IntN(high-low+1) }

// some sets a field seven times of ten.
func (g *generator) some(to object, field string, make func() any) {
	if g.chance(7) {
		to[field] = make()
	}
}

// choose returns the elements that a coin falls for, in a random order.
func (g *generator) choose(from []string, tenths int) []string {
	chosen := slices.DeleteFunc(slices.Clone(from), func(string) bool { return !g.chance(tenths) })
	g.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	return chosen
}

func (g *generator) settings(to object) {
	g.some(to, "parallelism", func() any { return g.between(1, 64) })
	g.some(to, "percentageOfNodesToScore", func() any { return g.between(0, 100) })
	g.some(to, "podInitialBackoffSeconds", func() any { return g.between(1, 9) })
	g.some(to, "podMaxBackoffSeconds", func() any { return g.between(10, 99) })
	g.some(to, "enableProfiling", func() any { return g.chance(5) })
	g.some(to, "enableContentionProfiling", func() any { return g.chance(5) })
}

func (g *generator) client() any {
	client := object{"kubeconfig": "/etc/kubernetes/scheduler.conf"}
	g.some(client, "qps", func() any { return g.between(1, 500) })
	g.some(client, "burst", func() any { return g.between(1, 900) })
	g.some(client, "contentType", func() any { return "application/json" })
	return client
}

func (g *generator) election() any {
	lease := object{"leaderElect": g.chance(5), "resourceLock": "leases"}
	g.some(lease, "resourceName", func() any { return "my-scheduler" })
	g.some(lease, "resourceNamespace", func() any { return "scheduling" })
	g.some(lease, "leaseDuration", func() any { return fmt.Sprintf("%ds", g.between(20, 60)) })
	g.some(lease, "renewDeadline", func() any { return fmt.Sprintf("%ds", g.between(9, 14)) })
	return lease
}

func (g *generator) extenders() any {
	var all []object
	for i := range g.between(1, 2) {
		extender := object{"urlPrefix": fmt.Sprintf("http://127.0.0.1:%d/", 9000+i), "weight": g.between(1, 20)}
		g.some(extender, "filterVerb", func() any { return "filter" })
		g.some(extender, "prioritizeVerb", func() any { return "prioritize" })
		g.some(extender, "preemptVerb", func() any { return "preempt" })
		g.some(extender, "nodeCacheCapable", func() any { return g.chance(5) })
		g.some(extender, "ignorable", func() any { return g.chance(5) })
		g.some(extender, "httpTimeout", func() any { return fmt.Sprintf("%dms", g.between(100, 9999)) })
		g.some(extender, "managedResources", func() any {
			return []object{{"name": fmt.Sprintf("example.com/gpu-%d", i), "ignoredByScheduler": g.chance(5)}}
		})
		if i == 0 {
			g.some(extender, "bindVerb", func() any { return "bind" })
			g.some(extender, "tlsConfig", func() any { return object{"insecure": true, "serverName": "extender"} })
		}
		all = append(all, extender)
	}
	return all
}

func (g *generator) profiles() any {
	var all []object
	for i := range g.between(1, 3) {
		profile := object{"schedulerName": fmt.Sprintf("scheduler-%d", i)}
		plugins, configs := g.plugins()
		if len(plugins) > 0 {
			profile["plugins"] = plugins
		}
		configs = append(configs, g.arguments()...)
		if len(configs) > 0 {
			profile["pluginConfig"] = configs
		}
		all = append(all, profile)
	}
	return all
}
