package schema

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// legacyAPIs are the config APIs that no supported release reads; they are only converted
// (staging/src/k8s.io/kube-scheduler/config/<api>/types.go of 1.18).
func legacyAPIs() []API {
	return []API{
		{Name: "v1alpha1", Set: InV1beta1, Duplicates: true, Removed: "1.19"},
		{Name: "v1alpha2", Set: InV1beta1, Duplicates: true, Removed: "1.19"},
	}
}

// policySource returns the field of a v1alpha1 configuration that names a Policy, or nil.
func policySource(root *yaml.Node) *yaml.Node {
	source := node.Get(root, "algorithmSource", "policy")
	if node.Text(root, "apiVersion") != ConfigGroup+"/v1alpha1" || !node.IsMapping(source) {
		return nil
	}
	return source
}

// upgrade rewrites a configuration of v1alpha1 or v1alpha2 for v1beta1, which has the same fields
// at other places.
type upgrade struct {
	from  string
	root  *yaml.Node
	notes []Note
}

func (u *upgrade) note(at *yaml.Node, format string, args ...any) {
	u.notes = append(u.notes, Note{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)})
}

// upgradeLegacy rewrites the document, or the configuration that names its Policy, for v1beta1.
func (d *Document) upgradeLegacy() *Problem {
	u := &upgrade{from: d.API.Name, root: d.Root}
	if d.Outer != nil {
		u.from, u.root = "v1alpha1", d.Outer
	}
	if problem := u.algorithm(d.Outer != nil); problem != nil {
		return problem
	}
	v1beta1 := APIs()[0]
	_, version := node.Lookup(u.root, "apiVersion")
	u.note(version, "config API %s, which 1.18 was the last to read, is read as %s", u.from, v1beta1.Name)
	version.Value = v1beta1.GroupVersion()
	if u.from == "v1alpha1" {
		u.profile()
	}
	u.lock()
	u.plugins()
	u.perProfile("hardPodAffinitySymmetricWeight", InterPodAffinity, "hardPodAffinityWeight")
	u.perProfile("bindTimeoutSeconds", VolumeBinding, "bindTimeoutSeconds")
	u.preemption()
	u.extenders()
	if d.Outer == nil {
		d.API = v1beta1
	}
	d.Notes = append(d.Notes, u.notes...)
	return nil
}

// algorithm converts the plugins' source: a named set of defaults or a Policy. withPolicy is set if
// the Policy is known.
func (u *upgrade) algorithm(withPolicy bool) *Problem {
	policy := policySource(u.root)
	if policy != nil && !withPolicy {
		where := fmt.Sprintf("the Policy of ConfigMap %s/%s", node.Text(policy, "configMap", "namespace"),
			node.Text(policy, "configMap", "name"))
		try := "append that ConfigMap to the file after a line `---`, or convert the Policy instead of this file"
		if file := node.Text(policy, "file", "path"); file != "" {
			where, try = "the Policy in the file "+file, "convert that file instead of this one"
		}
		return &Problem{Line: policy.Line, Column: policy.Column, Try: try, Message: fmt.Sprintf(
			"%s was removed in 1.19, and the predicates, priorities and extenders of this file are in %s, which is not part of it",
			u.from, where)}
	}
	key, source := node.Remove(u.root, "algorithmSource")
	provider := node.Get(source, "provider")
	switch name := node.Text(provider); name {
	case "", "DefaultProvider":
		if key != nil {
			u.note(key, "algorithmSource left out: profiles replace it")
		}
	case "ClusterAutoscalerProvider":
		plugins := node.Child(u.root, "plugins")
		Disable(plugins, "score", LeastAllocated)
		Enable(plugins, "score", MostAllocated, 1)
		u.note(provider, "algorithm provider %s becomes the plugin %s", name, MostAllocated)
	default:
		return &Problem{Line: provider.Line, Column: provider.Column,
			Message: fmt.Sprintf("unknown algorithm provider %q", name),
			Try:     "use DefaultProvider or ClusterAutoscalerProvider"}
	}
	return nil
}

// profile moves the fields of a v1alpha1 configuration that belong to a profile into one.
func (u *upgrade) profile() {
	if node.Get(u.root, "profiles") != nil {
		return // it is not a field of v1alpha1, so the others are reported as unknown
	}
	only := node.Mapping()
	for _, name := range []string{"schedulerName", "plugins", "pluginConfig"} {
		if key, value := node.Remove(u.root, name); key != nil && !node.IsNull(value) {
			only.Content = append(only.Content, key, value)
			u.note(key, "%s moved into a profile", name)
		}
	}
	if plugins := node.Get(only, "plugins"); node.IsMapping(plugins) {
		if key, _ := node.Lookup(plugins, "postFilter"); key != nil {
			key.Value = "preScore"
			u.note(key, "postFilter becomes preScore, its name from v1alpha2 on")
		}
	}
	node.Put(u.root, "profiles", node.Sequence([]*yaml.Node{only}))
}

// lock renames the fields of the leader election lock.
func (u *upgrade) lock() {
	lease := node.Get(u.root, "leaderElection")
	for _, end := range []string{"Name", "Namespace"} {
		if key, value := node.Remove(lease, "lockObject"+end); key != nil && !node.IsNull(value) {
			node.Put(lease, "resource"+end, value)
			u.note(key, "lockObject%s becomes resource%s", end, end)
		}
	}
}

// plugins renames plugins, and moves unreserve to reserve, which has its part.
func (u *upgrade) plugins() {
	for _, p := range u.allProfiles() {
		plugins := node.Get(p, "plugins")
		if key, set := node.Remove(plugins, "unreserve"); key != nil {
			for _, e := range node.Items(set, "enabled") {
				if Entry(plugins, "reserve", "enabled", node.Text(e, "name")) == nil {
					Enable(plugins, "reserve", node.Text(e, "name"), 0)
				}
			}
			u.note(key, "unreserve left out: plugins of reserve undo their reservations")
		}
		named := node.Items(p, "pluginConfig")
		for _, set := range PluginSets(plugins) {
			named = slices.Concat(named, node.Items(set.Node, "enabled"), node.Items(set.Node, "disabled"))
		}
		for _, e := range named {
			if node.Text(e, "name") == "DefaultPodTopologySpread" {
				Rename(e, "SelectorSpread")
				u.note(e, "DefaultPodTopologySpread becomes SelectorSpread, its name from 1.19 on")
			}
			group := node.Get(e, "args", "apiVersion")
			if node.Text(group) == ConfigGroup+"/"+u.from {
				group.Value = APIs()[0].GroupVersion()
			}
		}
	}
}

// perProfile moves a document field to a plugin's arguments in each profile.
func (u *upgrade) perProfile(name, plugin, argument string) {
	key, value := node.Remove(u.root, name)
	if key == nil || node.IsNull(value) {
		return
	}
	for _, p := range u.allProfiles() {
		if args := ArgsOf(p, plugin); node.IsNull(args, argument) {
			copied := *value
			node.Put(args, argument, &copied)
		}
	}
	u.note(key, "%s becomes args.%s of %s", name, argument, plugin)
}

// preemption disables the plugin that replaced disablePreemption.
func (u *upgrade) preemption() {
	key, value := node.Remove(u.root, "disablePreemption")
	if key == nil || !node.IsTrue(value) {
		return
	}
	for _, p := range u.allProfiles() {
		if plugins := node.Child(p, "plugins"); !IsDisabled(plugins, "postFilter", "DefaultPreemption") {
			Disable(plugins, "postFilter", "DefaultPreemption")
		}
	}
	u.note(key, "disablePreemption becomes DefaultPreemption disabled under postFilter")
}

// extenders converts the fields that v1alpha2 has as a Policy has them.
func (u *upgrade) extenders() {
	for _, e := range node.Items(u.root, "extenders") {
		if key, _ := node.Lookup(e, "enableHttps"); key != nil {
			key.Value = "enableHTTPS"
		}
		key, value := node.Lookup(e, "httpTimeout")
		if nanoseconds, err := strconv.ParseInt(node.Text(value), 10, 64); err == nil {
			node.Put(e, "httpTimeout", node.String(time.Duration(nanoseconds).String()))
			u.note(key, "httpTimeout %d becomes %s", nanoseconds, time.Duration(nanoseconds))
		}
	}
}

// allProfiles returns the profiles, and adds the implicit one if there are none.
func (u *upgrade) allProfiles() []*yaml.Node { return (&Document{Root: u.root}).Profiles() }
