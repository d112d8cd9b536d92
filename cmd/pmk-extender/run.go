package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/scheduler/extender"
)

// version is set by the linker (-X main.version=…).
var version string

// ownVersion returns this program's version.
func ownVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// Exit statuses, the same as in pmk-sched.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// drainTime is the time that clients may take to notice that a pod stops.
const drainTime = 5 * time.Second

// program is the program with its environment, which tests replace.
type program struct {
	stdout, stderr io.Writer
	drain          time.Duration
	onListen       func(net.Addr)
}

func (p program) run(ctx context.Context, args []string) int {
	err := p.serve(ctx, args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	// A failure to write the error cannot be reported.
	_, _ = fmt.Fprintf(p.stderr, "error: %s\n", err)
	var wrong interface{ Invalid() bool }
	if errors.As(err, &wrong) && wrong.Invalid() {
		return exitUsage
	}
	return exitFailed
}

func (p program) serve(ctx context.Context, args []string) error {
	o, err := parse(args, p.stderr)
	if err != nil {
		return err
	}
	if o.printVersion {
		return printVersion(p.stdout)
	}
	c, err := o.configuration()
	if err != nil {
		return err
	}
	config, err := o.cluster()
	if err != nil {
		return err
	}
	log := newLogger(p.stderr)
	handler, err := newHandler(ctx, o, c, config, log)
	if err != nil {
		return err
	}
	return extender.Serve(ctx, extender.ServeOptions{
		Listen: c.Listen, TLS: extender.TLSFiles{CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile,
			ClientCAFile: c.TLS.ClientCAFile},
		AnonymousVerbs: c.TLS.AnonymousVerbs, DrainTime: p.drain, Log: log, OnListen: p.onListen,
	}, handler)
}

// newHandler creates the policies and the extender, and starts to read the cluster.
func newHandler(ctx context.Context, o options, c *extender.Configuration, config *rest.Config,
	log *zap.Logger) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	handle, err := extender.NewHandle(extender.HandleOptions{Config: config, Log: log, Verbosity: o.verbosity,
		Registry: registry})
	if err != nil {
		return nil, err
	}
	policies, err := extender.MakePolicies(ctx, c.Policies, plugins(), handle)
	if err != nil {
		return nil, err
	}
	e, err := extender.New(extender.Options{Handle: handle, Policies: policies, Verbs: c.Verbs,
		NamesOnly: c.NodeCacheCapable, MaxBody: c.MaxBodyBytes})
	if err != nil {
		return nil, err
	}
	return e.Handler(), handle.Start(ctx)
}

// cluster returns the client configuration for the API server, or nil if the extender runs without
// a cluster.
func (o options) cluster() (*rest.Config, error) {
	if o.kubeconfigGiven && o.kubeconfig == "" {
		return nil, nil
	}
	if !o.kubeconfigGiven {
		config, err := rest.InClusterConfig()
		if err == nil {
			return config, nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("read the pod's own credentials: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, usagef("read the kubeconfig: %w (--kubeconfig FILE names one, --kubeconfig \"\" runs without a cluster)",
			err)
	}
	return config, nil
}

func printVersion(stdout io.Writer) error {
	if _, err := fmt.Fprintf(stdout, "pmk-extender %s %s %s/%s\npolicies:", ownVersion(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH); err != nil {
		return err
	}
	for _, p := range plugins() {
		if _, err := fmt.Fprintf(stdout, " %s", p.Name); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(stdout)
	return err
}

func newLogger(w io.Writer) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime, config.EncodeLevel = zapcore.ISO8601TimeEncoder, zapcore.CapitalLevelEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(config), zapcore.Lock(zapcore.AddSync(w)), zapcore.InfoLevel))
}
