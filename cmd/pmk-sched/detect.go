package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/build"
	"github.com/pmk-sched/pmk-sched/versions"
)

func detectCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "detect",
		Usage: "tell what the cluster is and what a scheduler for it has to be like",
		Description: "Release, distribution, configuration API, control-plane nodes, the default scheduler, a free port; on a master also\n" +
			"the scheduler's own credentials. Reads only; what may not be read is a warning.",
		Flags: []cli.Flag{nameFlag(), outputFlag()},
		Action: func(c *cli.Context) error {
			cfg, err := connect(c, u)
			if err != nil {
				return err
			}
			cache, err := cacheDir(c)
			if err != nil {
				return err
			}
			sourceGo := func(ctx context.Context, release versions.Release) (string, error) {
				return build.SourceInfo(ctx, release, build.SourceOptions{CacheDir: cache, Env: os.Environ(), Log: u.log})
			}
			info, err := detect(c, u, cfg, c.String("name"), global(c, flagNamespace), sourceGo)
			if err != nil {
				return err
			}
			return u.data(c.String("o"), info, infoTable(info))
		},
	}
}
