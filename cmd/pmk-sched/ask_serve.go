package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/foresight/ask"
	"github.com/pmk-sched/pmk-sched/scheduler/extender"
)

func askServeCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "keep a scheduler running that answers questions about the live cluster",
		Description: "The scheduler runs on this machine. A proxy passes its reads to the API server and answers its " +
			"writes, so that nothing on the cluster is changed. At an address, TLS and a token are required.",
		UsageText: command.Examples("pmk-sched ask serve",
			"pmk-sched ask serve -f pmk-sched.yaml --listen unix:/run/pmk-sched/ask.sock",
			"pmk-sched ask serve --rbac | kubectl apply -f -"),
		Flags: localSchedulerFlags("the cluster's",
			trustFlag(),
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS`: HOST:PORT or unix:PATH", DefaultText: "the socket of the user"},
			&cli.StringFlag{Name: "tls-cert-file", Usage: "serve HTTPS with the certificate in `FILE`"},
			&cli.StringFlag{Name: "tls-private-key-file", Usage: "key `FILE` of the certificate"},
			&cli.StringFlag{Name: "token-file", Usage: "require the token in `FILE` from clients"},
			rbacFlag("the server"),
			&cli.StringSliceFlag{Name: "resource", Usage: "with --rbac: `PLURAL.GROUP` that a plugin reads"},
			command.OutputFlag("", "yaml", "json", "table"),
		),
		Action: func(c *cli.Context) error {
			if c.Bool("rbac") {
				return u.printRole(roleFormat(c), ask.Role, c.StringSlice("resource"), "get", "list", "watch")
			}
			return runAskServe(c, u)
		},
	}
}

func runAskServe(c *cli.Context, u *ui) (err error) {
	if len(c.StringSlice("resource")) > 0 || c.IsSet("output") {
		return problem.Invalidf("", "--resource and --output are for --rbac only")
	}
	o, token, err := askServeOptions(c)
	if err != nil {
		return err
	}
	subjects, err := askedSchedulers(c, u)
	if err != nil {
		return err
	}
	routes, err := lifecycle.Routes(u.Session)
	if err != nil {
		return err
	}
	schedulers, err := ask.Start(c.Context, u.Session, subjects, routes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, schedulers.Close()) }()
	o.Log = u.Session.Log
	o.OnListen = func(address net.Addr) { u.Session.Note("answering at " + address.String()) }
	return extender.Serve(c.Context, o, ask.NewHandler(schedulers, token, u.Session.Log))
}

// askedSchedulers returns the scheduler that the flags describe. If they describe none, it returns
// the schedulers of the cluster: the default scheduler and those that pmk-sched has deployed.
func askedSchedulers(c *cli.Context, u *ui) ([]ask.Subject, error) {
	for _, flag := range []string{"name", "file", "config", "preset", "with", "branch"} {
		if c.IsSet(flag) {
			one, err := simulatedScheduler(c, u, true)
			return []ask.Subject{{Scheduler: one}}, err
		}
	}
	flags := nameFlags(c, u)
	first, err := ask.DefaultScheduler(c.Context, u.Session, func(file string) (pack.Scheduler, error) {
		configured := flags
		configured.Config = file
		sp, err := spec.Read(configured)
		if err != nil {
			return pack.Scheduler{}, err
		}
		return sp.Simulation(nil, nil)
	})
	if err != nil {
		return nil, err
	}
	all := []ask.Subject{first}
	deployed, err := lifecycle.DeployedNames(c.Context, u.Session)
	if err != nil {
		return nil, err
	}
	for _, name := range deployed {
		flags.Namespace, flags.Name = name.Namespace, name.Name
		subject := ask.Subject{Scheduler: pack.Scheduler{Name: name.Name}}
		if sp, err := spec.Read(flags); err != nil {
			subject.Absent = err
		} else if subject.Scheduler, err = deployedScheduler(c, u, sp); err != nil {
			subject.Name, subject.Absent = name.Name, err
		}
		if err := c.Err(); err != nil {
			return nil, err
		}
		all = append(all, subject)
	}
	return all, nil
}

// askServeOptions returns the address, and the token that clients need. At a socket the user has
// the permissions, elsewhere TLS and a token are required.
func askServeOptions(c *cli.Context) (o extender.ServeOptions, token string, err error) {
	o.Listen = c.String("listen")
	o.TLS = extender.TLSFiles{CertFile: c.String("tls-cert-file"), KeyFile: c.String("tls-private-key-file")}
	if name := c.String("token-file"); name != "" {
		text, err := problem.ReadFile("token", name)
		if err != nil {
			return o, "", err
		}
		if token = strings.TrimSpace(string(text)); len(token) < 16 {
			return o, "", problem.Invalidf("", "the token in %s must have at least 16 characters", name)
		}
	}
	if o.Listen == "" {
		path, err := askSocket()
		if err != nil {
			return o, "", err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return o, "", problem.Errorf("set --listen", "prepare the socket of the user: %w", err)
		}
		o.Listen = extender.SocketPrefix + path
	}
	socket := strings.HasPrefix(o.Listen, extender.SocketPrefix)
	switch {
	case socket && (o.TLS.CertFile != "" || o.TLS.KeyFile != ""):
		return o, "", problem.Invalidf("", "a socket does not use TLS")
	case !socket && (o.TLS.CertFile == "" || o.TLS.KeyFile == "" || token == ""):
		return o, "", problem.Invalidf("or use --listen unix:PATH",
			"--tls-cert-file, --tls-private-key-file and --token-file are required with --listen HOST:PORT")
	}
	return o, token, nil
}
