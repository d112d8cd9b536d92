package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// FlagNamespace is the name of the global flag for the namespace.
const FlagNamespace = "namespace"

// GlobalFlag is accepted before the command and after it. Only the flag before it reads the
// environment: a variable must not win over a flag.
type GlobalFlag struct {
	cli.StringFlag
	// Env is the variable's name without the prefix PMK_SCHED_. It may be empty.
	Env string
}

// ClusterFlags select the cluster and the control-plane node on which a program works.
func ClusterFlags() []GlobalFlag {
	return []GlobalFlag{
		{cli.StringFlag{
			Name: "kubeconfig", Usage: "kubeconfig `FILE`",
			DefaultText: "$KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount"}, "KUBECONFIG"},
		{cli.StringFlag{Name: "context", Usage: "`CONTEXT` of the kubeconfig"}, "CONTEXT"},
		{cli.StringFlag{Name: "cluster", Usage: "`CLUSTER` of the kubeconfig"}, ""},
		{cli.StringFlag{Name: "user", Usage: "`USER` of the kubeconfig"}, ""},
		{cli.StringFlag{Name: "server", Aliases: []string{"s"}, Usage: "`URL` of the API server"}, ""},
		{cli.StringFlag{Name: "as", Usage: "`USER` to impersonate"}, ""},
		{cli.StringFlag{
			Name: "request-timeout", Usage: "wait at most `DURATION` for one answer of the API server", DefaultText: "30s"}, ""},
		{cli.StringFlag{Name: FlagNamespace, Aliases: []string{"n"}, Value: spec.DefaultNamespace,
			Usage: "`NAMESPACE` of the scheduler's objects"}, "NAMESPACE"},
		{cli.StringFlag{
			Name: "node-root", Usage: "`DIR` with the files of a control-plane node, or none",
			DefaultText: "/, if this is a control-plane node"}, "NODE_ROOT"},
	}
}

// MachineFlags set the logs, the cache and the sources of programs. Every program has them.
func MachineFlags() []GlobalFlag {
	return []GlobalFlag{
		{cli.StringFlag{
			Name: "log-level", Usage: "minimum log `LEVEL`: debug, info, warn, error", DefaultText: "warn; info with json"},
			"LOG_LEVEL"},
		{cli.StringFlag{Name: "log-format", Value: "console", Usage: "`FORMAT` of logs: console or json"}, "LOG_FORMAT"},
		{cli.StringFlag{Name: "cache-dir", Usage: "build cache `DIR`", DefaultText: "the user's cache directory"}, "CACHE"},
		{cli.StringFlag{Name: "programs", Usage: "`SOURCE` of the programs of labs and simulations: auto, published, build, or " +
			"a directory", DefaultText: "auto"}, "PROGRAMS"},
		{cli.StringFlag{Name: "kubernetes-registry", Usage: "`REGISTRY` with the images of Kubernetes",
			DefaultText: programs.DefaultRegistry}, "KUBERNETES_REGISTRY"},
		{cli.StringFlag{Name: "kubernetes-downloads", Usage: "`URL` of the download site of Kubernetes",
			DefaultText: programs.DefaultDownloads}, "KUBERNETES_DOWNLOADS"},
	}
}

// beforeCommand returns the flags that are accepted before the command.
func beforeCommand(flags []GlobalFlag) []cli.Flag {
	list := make([]cli.Flag, 0, len(flags))
	for _, f := range flags {
		if f.Env != "" {
			f.EnvVars = []string{"PMK_SCHED_" + f.Env}
		}
		list = append(list, &f.StringFlag)
	}
	return list
}

// afterCommand returns the flags that are accepted after the command, where the help does not
// repeat them.
func afterCommand(flags []GlobalFlag) []cli.Flag {
	list := make([]cli.Flag, 0, len(flags))
	for _, f := range flags {
		f.Hidden = true
		list = append(list, &f.StringFlag)
	}
	return list
}

type globals struct {
	// Namespace is empty unless a flag or the environment sets it.
	Namespace, NodeRoot, LogLevel, LogFormat, CacheDir string
	Programs                                           session.Programs
	Connect                                            kubeapi.ConnectOptions
}

// readGlobals reads the global flags. If a flag has several values, the value nearest to the
// command wins.
func readGlobals(c *cli.Context) (globals, error) {
	value := func(name string) string {
		for _, level := range c.Lineage() {
			if slices.Contains(level.LocalFlagNames(), name) {
				return level.String(name)
			}
		}
		return ""
	}
	g := globals{
		Namespace: value(FlagNamespace), NodeRoot: value("node-root"), LogLevel: value("log-level"),
		LogFormat: value("log-format"),
		CacheDir:  value("cache-dir"),
		Programs: session.Programs{From: value("programs"), Registry: value("kubernetes-registry"),
			Downloads: value("kubernetes-downloads"), Assets: os.Getenv("KUBEBUILDER_ASSETS")},
		Connect: kubeapi.ConnectOptions{
			Kubeconfig: value("kubeconfig"), Context: value("context"), Cluster: value("cluster"), User: value("user"),
			Server: value("server"), As: value("as"),
		},
	}
	if text := value("request-timeout"); text != "" && text != "0" {
		timeout, err := time.ParseDuration(text)
		if err != nil || timeout < 0 {
			return g, problem.Invalidf("", "invalid --request-timeout %q: must be a duration such as 10s", text)
		}
		g.Connect.RequestTimeout = timeout
	}
	return g, nil
}

// setUp makes the logger and the session from the global flags, and redirects the libraries' own
// logs to the logger.
func (u *UI) setUp(g globals) error {
	if !slices.Contains([]string{"", "console", "json"}, g.LogFormat) {
		return problem.Invalidf("", "invalid --log-format %q: must be console or json", g.LogFormat)
	}
	u.json = g.LogFormat == "json"
	threshold := zapcore.WarnLevel
	if u.json {
		threshold = zapcore.InfoLevel
	}
	if g.LogLevel != "" {
		if err := threshold.UnmarshalText([]byte(g.LogLevel)); err != nil {
			return problem.Invalidf("", "invalid --log-level %q: must be debug, info, warn or error", g.LogLevel)
		}
	}
	u.Log = newLogger(u.err, u.json, threshold)
	// client-go and controller-runtime log for developers: at debug level.
	debug := u.Log.Named("client").WithOptions(zap.AddCallerSkip(1))
	logger := funcr.New(func(prefix, args string) { debug.Debug(prefix + " " + args) }, funcr.Options{})
	klog.SetLogger(logger)
	ctrllog.SetLogger(logger)

	cache, err := cacheDir(g.CacheDir)
	if err != nil {
		return err
	}
	if from := g.Programs.From; strings.ContainsRune(from, filepath.Separator) {
		if g.Programs.From, err = filepath.Abs(from); err != nil {
			return fmt.Errorf("find --programs: %w", err)
		}
	}
	g.Connect.UserAgent, g.Connect.Log = "pmk-sched/"+u.Version, u.Log
	u.Namespace = g.Namespace
	u.Session = &session.Session{
		Connection: g.Connect, NodeRoot: g.NodeRoot, CacheDir: cache, Environ: os.Environ(),
		Programs: g.Programs,
		Warn:     func(text string) { u.Warn(text) }, Note: func(text string) { u.Say("note: %s", text) }, OnStep: u.Step,
		Log: u.Log,
	}
	return nil
}

func newLogger(w zapcore.WriteSyncer, json bool, threshold zapcore.Level) *zap.Logger {
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(cfg)
	if !json {
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(cfg)
	}
	return zap.New(zapcore.NewCore(encoder, w, threshold))
}

// cacheDir is the directory that builds and labs share.
func cacheDir(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", problem.Invalidf("set --cache-dir", "find the user's cache directory: %w", err)
	}
	return filepath.Join(dir, "pmk-sched"), nil
}
