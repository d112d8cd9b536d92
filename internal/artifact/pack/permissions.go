package pack

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
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/otherschedulers"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp"
)

// packages is the import path under which the bundled plugins are.
const packages = "github.com/pmk-sched/pmk-sched/scheduler/plugins"

// RulesFunc returns the permissions that a plugin with the given arguments (YAML, or nil) needs.
type RulesFunc = func(args []byte) ([]rbacv1.PolicyRule, error)

// DeclaredRules returns each bundled plugin's RulesFunc, by its directory's name. The plugins are
// linked into pmk-sched, so that their rules can be granted without compiling anything.
func DeclaredRules() map[string]RulesFunc {
	all := map[string]RulesFunc{}
	for name, declared := range map[string]func(scheduler.Arguments) ([]rbacv1.PolicyRule, error){
		"blockall":        blockall.Rules,
		"coscheduling":    coscheduling.Rules,
		"costaware":       costaware.Rules,
		"elasticquota":    elasticquota.Rules,
		"gpupacking":      gpupacking.Rules,
		"loadaware":       loadaware.Rules,
		"networkaware":    networkaware.Rules,
		"numaaware":       numaaware.Rules,
		"otherschedulers": otherschedulers.Rules,
		"timestamp":       timestamp.Rules,
	} {
		all[name] = func(args []byte) ([]rbacv1.PolicyRule, error) { return declared(scheduler.NewArguments(args)) }
	}
	return all
}

// RulesOfPackage returns the RulesFunc of the bundled plugin with that import path, nil for any
// other package.
func RulesOfPackage(importPath string) RulesFunc {
	dir, name := path.Split(importPath)
	if path.Clean(dir) != packages {
		return nil
	}
	return DeclaredRules()[name]
}
