package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/install"
)

func renderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name:  "render",
		Usage: "print the objects that deploy would apply",
		Description: "Asks the cluster for what is not given. With --branch it also works where there is none; then nothing is known\n" +
			"of the nodes, so look at nodeSelector and port. Keys are left out unless --show-secrets is given.",
		Flags: append(schedulerFlags(),
			&cli.BoolFlag{Name: "offline", Usage: "ask no cluster, even if there is a kubeconfig; needs --branch"},
			&cli.BoolFlag{Name: "show-secrets", Usage: "write keys too, so that the output can be applied"}),
		Action: func(c *cli.Context) error {
			o, err := readOptions(c)
			if err != nil {
				return err
			}
			plan, err := planForRender(c, u, o)
			if err != nil {
				return err
			}
			text, err := install.Render(plan, c.Bool("show-secrets"))
			if err != nil {
				return err
			}
			_, err = u.out.Write(text)
			return err
		},
	}
}

// planForRender asks the cluster if there is one. That there is no kubeconfig is
// no failure when the release is named.
func planForRender(c *cli.Context, u *ui, o install.Options) (*install.Plan, error) {
	if c.Bool("offline") {
		return makeOfflinePlan(c, u, o)
	}
	cfg, err := connect(c, u)
	switch {
	case errors.Is(err, errNoKubeconfig) && o.Branch != branchAuto:
		return makeOfflinePlan(c, u, o)
	case err != nil:
		return nil, err
	}
	return makePlan(c, u, cfg, o)
}
