//go:build linux && labs

package conformance

import (
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// firstInit is the first minor whose suite configures its framework with packages that it imports.
	firstInit = 26
	// firstDRA is the first minor with specs in the focus that are not in test/e2e/scheduling.
	firstDRA = 34
)

// partSource runs the specs of test/e2e/scheduling with upstream's entry point, without the files
// of the suite, which these specs do not read.
const partSource = `package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/scheduling"
	"k8s.io/kubernetes/test/utils/image"
	// more imports
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	if framework.TestContext.ListImages {
		for _, config := range image.GetImageConfigs() {
			fmt.Println(config.GetE2EImage())
		}
		return
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestE2E(t *testing.T) { e2e.RunE2ETests(t) }
`

// compileSuite compiles the suite of a release, before 1.34 only its part of scheduling: it has all
// specs in the focus and fewer packages. The whole suites of 1.20, 1.21 and some later patches do
// not compile: they lack a generated file, or import k8s.io/sample-apiserver at a version that the
// module proxy refuses.
func compileSuite(t *testing.T, release versions.Release) (string, error) {
	t.Helper()
	if release.Minor >= firstDRA {
		return controlplane.Build(t.Context(), build.Options{Release: release, Programs: []build.Program{
			{Name: "e2e.test", Package: "k8s.io/kubernetes/test/e2e", Test: true},
		}})
	}
	source := partSource
	if release.Minor >= firstInit {
		source = strings.Replace(source, "// more imports", `_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"`, 1)
	}
	return controlplane.Build(t.Context(), build.Options{
		Release: release, Programs: []build.Program{
			{Name: "e2e.test", Package: "pmk-sched.io/build/e2e", Test: true},
		},
		Files: map[string][]byte{"e2e/e2e_test.go": []byte(source)},
	})
}
