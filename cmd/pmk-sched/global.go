package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr/funcr"
	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	flagKubeconfig = "kubeconfig"
	flagContext    = "context"
	flagNamespace  = "namespace"
	flagNodeRoot   = "node-root"
	flagLogLevel   = "log-level"
	flagLogFormat  = "log-format"
	flagCacheDir   = "cache-dir"
)

const defaultNamespace = "kube-system"

// globalFlags are understood before the command and after it. Only the first
// kind reads the environment: a variable must not win over a flag.
func globalFlags(afterCommand bool) []cli.Flag {
	flags := []*cli.StringFlag{
		{Name: flagKubeconfig, Usage: "kubeconfig `FILE`; otherwise $KUBECONFIG, ~/.kube/config, or the pod's own ServiceAccount"},
		{Name: flagContext, Usage: "`CONTEXT` of the kubeconfig"},
		{Name: flagNamespace, Aliases: []string{"n"}, Value: defaultNamespace, Usage: "`NAMESPACE` of the scheduler's objects"},
		{Name: flagNodeRoot, Usage: "`DIR` under which a master's files are; / is found by itself, \"none\" reads no files"},
		{Name: flagLogLevel, Usage: "write logs from `LEVEL` on: debug, info, warn, error", DefaultText: "warn, info with json"},
		{Name: flagLogFormat, Value: "console", Usage: "`FORMAT` of logs: console or json"},
		{Name: flagCacheDir, Usage: "`DIR` for what builds leave for the next one", DefaultText: "the user's cache folder"},
	}
	env := map[string]string{
		flagKubeconfig: "PMK_SCHED_KUBECONFIG", flagContext: "PMK_SCHED_CONTEXT", flagNamespace: "PMK_SCHED_NAMESPACE",
		flagNodeRoot: "PMK_SCHED_NODE_ROOT", flagLogLevel: "PMK_SCHED_LOG_LEVEL", flagLogFormat: "PMK_SCHED_LOG_FORMAT",
		flagCacheDir: "PMK_SCHED_CACHE",
	}
	list := make([]cli.Flag, 0, len(flags))
	for _, f := range flags {
		f.Hidden = afterCommand
		if !afterCommand {
			f.EnvVars = []string{env[f.Name]}
		}
		list = append(list, f)
	}
	return list
}

// global returns the value of a global flag: the one nearest to the command
// that was given, else the default.
func global(c *cli.Context, name string) string {
	for _, level := range c.Lineage() {
		if slices.Contains(level.LocalFlagNames(), name) {
			return level.String(name)
		}
	}
	return c.String(name)
}

// globalIsSet reports whether a global flag was given, or its variable is set.
func globalIsSet(c *cli.Context, name string) bool {
	return slices.ContainsFunc(c.Lineage(), func(level *cli.Context) bool { return slices.Contains(level.LocalFlagNames(), name) })
}

// setUp makes the logger from the global flags and points the libraries' own
// logging at it.
func setUp(c *cli.Context, u *ui) error {
	format, level := global(c, flagLogFormat), global(c, flagLogLevel)
	if format != "console" && format != "json" {
		return usagef("use console or json", "unknown --log-format %q", format)
	}
	u.json = format == "json"
	threshold := zapcore.WarnLevel
	if u.json {
		threshold = zapcore.InfoLevel
	}
	if level != "" {
		if err := threshold.UnmarshalText([]byte(level)); err != nil {
			return usagef("use debug, info, warn or error", "unknown --log-level %q", level)
		}
	}
	u.log = newLogger(u.err, u.json, threshold)
	// client-go and controller-runtime log for developers: at debug level.
	debug := u.log.Named("client").WithOptions(zap.AddCallerSkip(1))
	logger := funcr.New(func(prefix, args string) { debug.Debug(prefix + " " + args) }, funcr.Options{})
	klog.SetLogger(logger)
	ctrllog.SetLogger(logger)
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

// cacheDir is where builds and labs keep what they can use again.
func cacheDir(c *cli.Context) (string, error) {
	if dir := global(c, flagCacheDir); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", usagef("name a folder with --cache-dir", "find the user's cache folder: %s", err)
	}
	return filepath.Join(dir, "pmk-sched"), nil
}

// outputFlag is -o, on commands that write data.
func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "o", Value: "table", Usage: "`FORMAT` of the data: table, json or yaml", Action: func(_ *cli.Context, format string) error {
		if !slices.Contains([]string{"table", "json", "yaml"}, format) {
			return usagef("use table, json or yaml", "unknown format -o %q", format)
		}
		return nil
	}}
}

// readFile reads a file that a flag, written as it is on the command line, names.
// Empty name: no file.
func readFile(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("", "read %s: %s", flag, err)
	}
	if len(text) == 0 {
		return nil, usagef("", "read %s: %s is empty", flag, name)
	}
	return text, nil
}

// parseLabels reads key=value pairs of a repeatable flag.
func parseLabels(flag string, pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	labels := map[string]string{}
	for _, pair := range pairs {
		key, value, err := cutPair(pair)
		if err != nil {
			return nil, usagef(fmt.Sprintf("write --%s key=value, or key= for any value", flag), "read --%s: %s", flag, err)
		}
		labels[key] = value
	}
	return labels, nil
}

func cutPair(pair string) (key, value string, err error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return "", "", fmt.Errorf("%q is not key=value", pair)
	}
	return key, value, nil
}

func firstList(lists ...[]string) []string {
	for _, l := range lists {
		if len(l) > 0 {
			return l
		}
	}
	return nil
}
