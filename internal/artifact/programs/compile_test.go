package programs

import (
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
)

func TestEtcdIsCompiledFromTheModuleOfItsVersion(t *testing.T) {
	for requested, want := range map[string]struct{ module, moduleVersion, version string }{
		"":        {"go.etcd.io/etcd/server/v3", build.EtcdVersion, build.EtcdVersion},
		"v3.5.3":  {"go.etcd.io/etcd/server/v3", "v3.5.3", "v3.5.3"},
		"v3.4.13": {"go.etcd.io/etcd", "v0.5.0-alpha.5.0.20200910180754-dd1b699fc489", "v3.4.13"},
	} {
		r, f := Request{EtcdVersion: requested}, &Finder{}
		modules := f.modules(r, []string{Etcd})
		if len(modules) != 1 || modules[0].Module != want.module || modules[0].Version != want.moduleVersion ||
			modules[0].Packages[0].Package != want.module {
			t.Errorf("etcd %q: got %+v, want %+v", requested, modules, want)
			continue
		}
		result := &build.Result{Info: build.Info{Release: want.moduleVersion}, Binaries: []build.Binary{{Program: Etcd}}}
		if got := r.compiledModule(result)[Etcd].Version; got != want.version {
			t.Errorf("etcd %q: got the version %q, want %q", requested, got, want.version)
		}
	}
}
