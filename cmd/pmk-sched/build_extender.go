package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/internal/image"
)

// program is the name of what is built.
func (o buildOptions) program() string {
	if o.Extender {
		return build.PmkExtender
	}
	return build.KubeScheduler
}

// programPath is where it lies in the image.
func (o buildOptions) programPath() string {
	if o.Extender {
		return image.ExtenderPath
	}
	return image.SchedulerPath
}

// compile makes the program.
func (o buildOptions) compile(c *cli.Context, u *ui, cache string) (*build.Result, error) {
	if o.Extender {
		return build.Extender(c.Context, build.ExtenderOptions{
			Version: ownVersion(), Plugins: o.Plugins.sources(), Platforms: o.Platforms,
			Sources: pmksched.Sources, GoMod: pmksched.GoMod, GoSum: pmksched.GoSum,
			CacheDir: cache, Keep: o.Keep, Env: os.Environ(), Log: u.log, OnStep: u.step,
		})
	}
	release, err := releaseToBuild(c, u, o.Branch)
	if err != nil {
		return nil, err
	}
	return build.Run(c.Context, build.Options{
		Release: release, Nearest: o.Nearest, Source: o.Source, Platforms: o.Platforms,
		Plugins: o.Plugins.sources(), Imports: o.Plugins.imports, Sources: pmksched.Sources,
		CacheDir: cache, Keep: o.Keep, Env: os.Environ(), Log: u.log, OnStep: u.step,
	})
}

// refuseSchedulerFlags refuses what a scheduler is built from, since an extender is not.
func refuseSchedulerFlags(c *cli.Context) error {
	if !c.Bool("extender") {
		return nil
	}
	for _, name := range []string{"branch", "nearest", "source", "import"} {
		if c.IsSet(name) {
			return usagef("leave --"+name+" out: one extender serves every release", "--extender and --%s exclude each other", name)
		}
	}
	return nil
}

// defaultExtenderImage is the image of the extender that this program makes when nothing else is said, and that
// `extender deploy` takes then. A tag has no plus sign, which a version may have.
func defaultExtenderImage() string {
	return "localhost/" + build.PmkExtender + ":" + strings.ReplaceAll(ownVersion(), "+", "-")
}
