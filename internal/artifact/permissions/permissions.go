// Package permissions contains the RBAC rules that the plugins in scheduler/plugins declare. Their
// code is linked into pmk-sched, so that the rules can be granted without compiling anything.
package permissions

import (
	"path"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/blockall"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/coscheduling"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/costaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/elasticquota"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/gpupacking"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/numaaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp"
)

// packages is the import path under which the bundled plugins are.
const packages = "github.com/pmk-sched/pmk-sched/scheduler/plugins"

// Rules returns the permissions that a plugin with the given arguments (YAML, or nil) needs.
type Rules = func(args []byte) ([]rbacv1.PolicyRule, error)

// All returns each bundled plugin's Rules, by its directory's name.
func All() map[string]Rules {
	all := map[string]Rules{}
	for name, declared := range map[string]func(scheduler.Arguments) ([]rbacv1.PolicyRule, error){
		"blockall":     blockall.Rules,
		"coscheduling": coscheduling.Rules,
		"costaware":    costaware.Rules,
		"elasticquota": elasticquota.Rules,
		"gpupacking":   gpupacking.Rules,
		"loadaware":    loadaware.Rules,
		"networkaware": networkaware.Rules,
		"numaaware":    numaaware.Rules,
		"timestamp":    timestamp.Rules,
	} {
		all[name] = func(args []byte) ([]rbacv1.PolicyRule, error) { return declared(scheduler.NewArguments(args)) }
	}
	return all
}

// OfPackage returns the Rules of the bundled plugin with that import path, nil for any other
// package.
func OfPackage(importPath string) Rules {
	dir, name := path.Split(importPath)
	if path.Clean(dir) != packages {
		return nil
	}
	return All()[name]
}
