package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	sigsyaml "sigs.k8s.io/yaml"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/image"
	"github.com/pmk-sched/pmk-sched/internal/install"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// addPlugins completes what is to be installed with the plugins in the image:
// those that the file or --with names, else those that the image was built with
// on this machine.
func addPlugins(c *cli.Context, u *ui, o *install.Options, release versions.Release) error {
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return err
	}
	if o.PluginRules, err = f.rules(); err != nil {
		return err
	}
	wanted, err := readChosen(c, f)
	if err != nil {
		return err
	}
	cache, err := cacheDir(c)
	if err != nil {
		return err
	}
	reference := strings.ReplaceAll(o.Image, manifest.ReleaseInImage, release.String())
	built, flags, known := builtImage(cache, reference)
	o.Flags = append(o.Flags, flagsOfImage(flags, c.IsSet("with"))...)
	if len(wanted.plugins) == 0 {
		o.Rules = rulesOf(built)
		for _, info := range built {
			o.Plugins = append(o.Plugins, profiles.Plugin{Name: info.Name, Points: info.Points})
		}
		warnOfRules(u, built, o.PluginRules)
		return nil
	}
	infos, err := build.ReadPlugins(c.Context, build.PluginOptions{
		Release: release, Plugins: wanted.sources(), Sources: pmksched.Sources, CacheDir: cache,
		Env: os.Environ(), Log: u.log, OnStep: u.step,
	})
	if err != nil {
		return err
	}
	for i, info := range infos {
		if known && !slices.Contains(pluginNames(built), info.Name) {
			return &usageError{problem: fmt.Sprintf("image %s was built without plugin %s", reference, info.Name), hint: "build it with --with " + wanted.plugins[i].String()}
		}
		configured, err := wanted.plugins[i].configure(info)
		if err != nil {
			return err
		}
		o.Plugins = append(o.Plugins, configured)
	}
	for _, info := range built {
		if !slices.Contains(pluginNames(infos), info.Name) {
			o.Plugins = append(o.Plugins, profiles.Plugin{Name: info.Name, Points: info.Points, Enable: []string{}})
		}
	}
	o.Rules = rulesOf(append(infos, built...))
	warnOfRules(u, infos, o.PluginRules)
	return nil
}

// builtImage returns the plugins of an image that was built on this machine, the
// flags that asked for them, and whether it was built here.
func builtImage(cache, reference string) (plugins []plugins.Info, flags []string, found bool) {
	name, err := image.CanonicalName(reference)
	if err != nil {
		return nil, nil, false
	}
	result, found, err := build.FindByImage(cache, name)
	if err != nil || !found {
		return nil, nil, false
	}
	return result.Info.Plugins, result.Flags, true
}

// flagsOfImage are the flags of an image's build that are to be noted with the
// deployment: an upgrade needs them for the next image. Plugins that deploy was
// told itself are noted already.
func flagsOfImage(flags []string, told bool) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return told && strings.HasPrefix(flag, "--with=") })
}

// warnOfRules warns of plugins whose declared needs cannot be asked for, since
// their code is not part of this program.
func warnOfRules(u *ui, infos []plugins.Info, given []rbacv1.PolicyRule) {
	shipped := rulesOf(infos)
	for _, info := range infos {
		if info.Rules && shipped[info.Name] == nil && len(given) == 0 {
			u.warn(fmt.Sprintf("plugin %s declares permissions (func Rules in %s): list them under spec.rbac.rules of pmk-sched.yaml to have them granted", info.Name, info.Package))
		}
	}
}

// rules returns spec.rbac.rules.
func (f *customScheduler) rules() ([]rbacv1.PolicyRule, error) {
	if f.Spec.RBAC.Rules.IsZero() {
		return nil, nil
	}
	text, err := yaml.Marshal(&f.Spec.RBAC.Rules)
	if err != nil {
		return nil, fmt.Errorf("write spec.rbac.rules: %w", err)
	}
	var rules []rbacv1.PolicyRule
	if err := sigsyaml.UnmarshalStrict(text, &rules); err != nil {
		return nil, usagef("it is a list of rules as in a ClusterRole: apiGroups, resources, verbs",
			"line %d: spec.rbac.rules: %s", f.Spec.RBAC.Rules.Line, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: "))
	}
	for i, rule := range rules {
		if len(rule.Verbs) == 0 || len(rule.Resources)+len(rule.NonResourceURLs) == 0 || len(rule.Resources) > 0 && len(rule.APIGroups) == 0 {
			return nil, usagef("", "line %d: spec.rbac.rules[%d] needs verbs, and apiGroups and resources, or nonResourceURLs", f.Spec.RBAC.Rules.Line, i)
		}
	}
	return rules, nil
}
