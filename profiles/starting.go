package profiles

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// starts is what the scheduler refuses when it puts its profiles together
// (NewFramework in pkg/scheduler/framework/runtime/framework.go) and sets up its
// leader election.
func (j *judgement) starts() {
	root := j.doc.root
	if j.doc.policy {
		return
	}
	lease := get(root, "leaderElection")
	elects := isNull(get(lease, "leaderElect")) || isTrue(get(lease, "leaderElect"))
	lock := get(lease, "resourceLock")
	old := j.api.minor >= 24 && slices.Contains([]string{"endpoints", "configmaps"}, text(lock))
	if known := []string{"", leases, "endpoints", "configmaps", "endpointsleases", "configmapsleases"}; elects && (old || !slices.Contains(known, text(lock))) {
		j.add(lock, "use leases", "resourceLock %q: %s does not have it", text(lock), j.release)
	}
	for _, p := range items(get(root, "profiles")) {
		plugins := get(p, "plugins")
		for _, set := range pluginSets(plugins) {
			j.pluginNames(set)
			j.twice(plugins, set)
		}
		if n := len(merged(plugins, "queueSort", j.api)); n > 1 || n == 0 && !j.reaches(plugins, "queueSort") {
			j.add(get(plugins, "queueSort"), "leave one enabled", "%d plugins sort the queue, wanted is one", n)
		}
		if len(merged(plugins, "bind", j.api)) == 0 && !j.reaches(plugins, "bind") {
			j.add(get(plugins, "bind"), "enable DefaultBinder", "no plugin binds pods")
		}
	}
}

// reaches says whether a plugin may reach an extension point by way of
// multiPoint, so that what is there cannot be told.
func (j *judgement) reaches(plugins *yaml.Node, point string) bool {
	return j.api.multiPoint && (get(plugins, multiPoint) != nil || !disabled(plugins, point, everyPlugin))
}

func (j *judgement) pluginNames(set namedSet) {
	if slices.Contains(j.api.ignored, set.point) {
		return
	}
	available := slices.Concat(j.rules.Plugins, j.plugins)
	for _, e := range items(get(set.node, "enabled")) {
		name := text(get(e, "name"))
		if slices.Contains(available, name) {
			j.takesPart(set, e, name)
			continue
		}
		try := "plugins of " + j.release.String() + ": " + strings.Join(available, ", ")
		if meant := nearest(name, available); meant != "" {
			try = "did you mean " + meant + "?"
		} else if !everInTree(name) {
			try = "compile it in: `pmk-sched build --with`"
		}
		j.add(get(e, "name"), try, "plugin %q does not exist in %s", name, j.release)
	}
}

// takesPart refuses an in-tree plugin at an extension point where it has nothing.
func (j *judgement) takesPart(set namedSet, e *yaml.Node, name string) {
	if slices.Contains(j.plugins, name) || extends(name, set.point, j.api.minor) {
		return
	}
	j.add(get(e, "name"), "leave it out", "plugin %s takes no part in %s in %s", name, set.point, j.release)
}

// twice refuses a plugin that ends up enabled twice at one extension point.
func (j *judgement) twice(plugins *yaml.Node, set namedSet) {
	seen := map[string]bool{}
	for _, name := range merged(plugins, set.point, j.api) {
		if seen[name] {
			where := entry(plugins, set.point, "enabled", name)
			j.add(where, "disable it first: add `- name: "+name+"` to "+set.point+".disabled, or keep one of the two", "plugin %s is enabled twice under %s", name, set.point)
		}
		seen[name] = true
	}
}

// merged returns the plugins that an extension point has after the defaults of
// the config API were added (mergePluginSet in <api>/default_plugins.go).
func merged(plugins *yaml.Node, point string, a api) []string {
	var names []string
	add := func(name string) { names = append(names, name) }
	enabled := items(get(plugins, point, "enabled"))
	for _, p := range inTreePlugins() {
		perPoint := !a.multiPoint || point == multiPoint
		named := entry(plugins, point, "enabled", p.name) != nil
		if perPoint && isDefault(a, point, p.name) && !disabled(plugins, point, p.name) && (a.duplicates || !named) {
			add(p.name)
		}
	}
	for _, e := range enabled {
		add(text(get(e, "name")))
	}
	return names
}
