package pack

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// BundledPlugin describes a plugin that is bundled with pmk-sched.
type BundledPlugin struct {
	// With is the value of --with for it.
	With string `json:"with"`
	plugins.Info
	plugins.Description
	// Permissions are the permissions that it needs without arguments. If they depend on required
	// arguments, they are empty and ByArguments is set.
	Permissions []rbacv1.PolicyRule `json:"permissions"`
	ByArguments bool                `json:"permissionsByArguments,omitempty"`
}

// BundledPlugins describes the plugins that are bundled with pmk-sched.
func BundledPlugins(ctx context.Context, s *session.Session) ([]BundledPlugin, error) {
	names, err := plugins.Builtins(pmksched.Sources)
	if err != nil {
		return nil, err
	}
	var bundledPlugins []plugins.Plugin
	for _, name := range names {
		bundledPlugins = append(bundledPlugins, plugins.Plugin{Builtin: name})
	}
	infos, err := build.ReadPlugins(ctx, build.Options{
		Environment: build.Environment{CacheDir: s.CacheDir, Env: s.Environ},
		Release:     versions.Releases()[0], Plugins: bundledPlugins, Sources: pmksched.Sources,
	})
	if err != nil {
		return nil, err
	}
	declared := DeclaredRules()
	var all []BundledPlugin
	for i, name := range names {
		p := BundledPlugin{With: bundledPlugins[i].String(), Info: infos[i], Permissions: []rbacv1.PolicyRule{}}
		if p.Description, err = plugins.Describe(pmksched.Sources, name); err != nil {
			return nil, err
		}
		if declared[name] != nil {
			rules, err := declared[name](nil)
			p.ByArguments = err != nil
			p.Permissions = append(p.Permissions, rules...)
		}
		all = append(all, p)
	}
	return all, nil
}
