package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
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

// ownVersion is what this program calls itself.
func ownVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// Exit statuses, as those of pmk-sched.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// drainTime is what the news of a pod that stops need to reach those who send requests to it.
const drainTime = 5 * time.Second

// run is the program without the process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := serve(ctx, args, stdout, stderr, nil)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	// There is nobody left to tell if this fails.
	_, _ = fmt.Fprintf(stderr, "error: %s\n", err)
	var wrong interface{ Invalid() bool }
	if errors.As(err, &wrong) && wrong.Invalid() {
		return exitUsage
	}
	return exitFailed
}

// serve runs until ctx is done. listening may be nil; see extender.ServeOptions.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer, listening func(address string)) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.printVersion {
		return printVersion(stdout)
	}
	c, err := o.configuration()
	if err != nil {
		return err
	}
	config, err := o.cluster()
	if err != nil {
		return err
	}
	log := newLogger(stderr)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	handle, err := extender.NewHandle(extender.HandleOptions{Config: config, Log: log, Verbosity: o.verbosity, Registry: registry})
	if err != nil {
		return err
	}
	policies, err := extender.MakePolicies(ctx, c.Policies, plugins(), handle)
	if err != nil {
		return err
	}
	e, err := extender.New(extender.Options{Handle: handle, Policies: policies, MaxBody: c.MaxBodyBytes})
	if err != nil {
		return err
	}
	if err := handle.Start(ctx); err != nil {
		return err
	}
	serving := extender.ServeOptions{
		Listen: c.Listen, TLS: extender.TLSFiles{CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, ClientCAFile: c.TLS.ClientCAFile},
		DrainTime: drainTime, Log: log,
	}
	if listening != nil {
		serving.DrainTime = 0
		serving.OnListen = func(address net.Addr) { listening(address.String()) }
	}
	return extender.Serve(ctx, serving, e.Handler())
}

// cluster says how the API server is reached; nil without one.
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
		return nil, usagef("read the kubeconfig: %w (--kubeconfig FILE names one, --kubeconfig \"\" runs without a cluster)", err)
	}
	return config, nil
}

func printVersion(stdout io.Writer) error {
	if _, err := fmt.Fprintf(stdout, "pmk-extender %s %s %s/%s\npolicies:", ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH); err != nil {
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
