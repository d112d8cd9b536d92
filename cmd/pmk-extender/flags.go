package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/scheduler/extender"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
)

type options struct {
	policies   []string
	verbs      []string
	config     string
	prometheus string
	listen     string
	kubeconfig string
	// kubeconfigGiven distinguishes an empty --kubeconfig (no cluster) from an unset one.
	kubeconfigGiven           bool
	certFile, keyFile, caFile string
	maxBody                   int64
	verbosity                 int
	printVersion              bool
}

// usageError is an error in the command line or a file.
type usageError struct{ error }

// Invalid reports that the input is wrong.
func (usageError) Invalid() bool { return true }

func usagef(format string, args ...interface{}) error {
	return usageError{fmt.Errorf(format, args...)}
}

// list is a flag that can be repeated.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

const usage = `Serves scheduling policies to kube-scheduler over HTTP: POST /filter, /prioritize and /preempt, and /bind to who has a client certificate.

  pmk-extender --policy loadaware --prometheus http://prometheus.monitoring:9090 --listen :8888

Flags override the file of --config.

`

// parse parses the command line. --help returns flag.ErrHelp.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("pmk-extender", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Var((*list)(&o.policies), "policy", "serve the plugin `NAME`, such as loadaware; can be repeated")
	flags.Var((*list)(&o.verbs), "verb",
		"serve the requests `VERB`; can be repeated (default filter, prioritize, preempt; bind requires --client-ca-file)")
	flags.StringVar(&o.config, "config", "",
		"configuration `FILE` (kind Extender): policies with arguments and weights, verbs, address, TLS")
	flags.StringVar(&o.prometheus, "prometheus", "", "Prometheus `URL` for the policy loadaware")
	flags.StringVar(&o.listen, "listen", "", "listen `ADDRESS` (default "+extender.DefaultListen+")")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig `FILE`; empty runs without a cluster (default: the pod's credentials, else KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&o.certFile, "tls-cert-file", "",
		"serve HTTPS with the certificate in `FILE`, which is reloaded when it changes")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "key `FILE` of the certificate")
	flags.StringVar(&o.caFile, "client-ca-file", "", "require client certificates signed by a CA in `FILE`")
	flags.Int64Var(&o.maxBody, "max-body", 0,
		"maximum size of a request in `BYTES` (default: follows from the number of nodes)")
	flags.IntVar(&o.verbosity, "v", 0, "log `LEVEL` of policies: 5 for the reasons of decisions, 10 for each node")
	flags.BoolVar(&o.printVersion, "version", false, "print the version and the policies")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stderr)
		if _, err := io.WriteString(stderr, usage); err != nil {
			return o, err
		}
		flags.PrintDefaults()
		return o, flag.ErrHelp
	}
	if err != nil {
		return o, usagef("%w (see --help)", err)
	}
	if flags.NArg() > 0 {
		return o, usagef("unexpected argument %q (see --help)", flags.Arg(0))
	}
	flags.Visit(func(f *flag.Flag) { o.kubeconfigGiven = o.kubeconfigGiven || f.Name == "kubeconfig" })
	return o, nil
}

// configuration returns the configuration file, overridden by the flags.
func (o options) configuration() (*extender.Configuration, error) {
	c := &extender.Configuration{APIVersion: extender.ConfigurationAPIVersion, Kind: extender.ConfigurationKind}
	if o.config != "" {
		text, err := os.ReadFile(o.config)
		if err != nil {
			return nil, usagef("read --config: %w", err)
		}
		if c, err = extender.ParseConfiguration(text); err != nil {
			return nil, fmt.Errorf("read --config %s: %w", o.config, err)
		}
	}
	if len(o.policies) > 0 {
		c.Policies = chosen(o.policies, c.Policies)
	}
	if len(c.Policies) == 0 {
		return nil, usagef("--policy or --config is required: no policy to serve")
	}
	for _, flag := range []struct {
		value string
		into  *string
	}{{o.listen, &c.Listen}, {o.certFile, &c.TLS.CertFile}, {o.keyFile, &c.TLS.KeyFile}, {o.caFile, &c.TLS.ClientCAFile}} {
		if flag.value != "" {
			*flag.into = flag.value
		}
	}
	if o.maxBody != 0 {
		c.MaxBodyBytes = o.maxBody
	}
	if len(o.verbs) > 0 {
		c.Verbs = o.verbs
	}
	switch {
	case c.MaxBodyBytes < 0:
		return nil, usagef("invalid --max-body %d: must be at least 0", c.MaxBodyBytes)
	case (c.TLS.CertFile == "") != (c.TLS.KeyFile == ""):
		return nil, usagef("--tls-cert-file and --tls-private-key-file are both required")
	case c.TLS.ClientCAFile != "" && c.TLS.CertFile == "":
		return nil, usagef("--client-ca-file requires --tls-cert-file and --tls-private-key-file")
	case slices.Contains(c.Verbs, extender.VerbBind) && c.TLS.ClientCAFile == "":
		return nil, usagef("--verb bind requires --client-ca-file: every client that reaches the address could bind pods")
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.prometheus == "" {
		return c, nil
	}
	return c, readFrom(c, o.prometheus)
}

// chosen returns the named policies, with weight and arguments from the file if it has them.
func chosen(names []string, inFile []extender.PolicyConfiguration) []extender.PolicyConfiguration {
	var all []extender.PolicyConfiguration
	for _, name := range names {
		one := extender.PolicyConfiguration{Name: name}
		if i := slices.IndexFunc(inFile,
			func(p extender.PolicyConfiguration) bool { return strings.EqualFold(p.Name, name) }); i >= 0 {
			one = inFile[i]
		}
		all = append(all, one)
	}
	return all
}

// readFrom sets the Prometheus URL of the policy loadaware.
func readFrom(c *extender.Configuration, url string) error {
	i := slices.IndexFunc(c.Policies,
		func(p extender.PolicyConfiguration) bool { return strings.EqualFold(p.Name, loadaware.Name) })
	if i < 0 {
		return usagef("--prometheus is for policy %s, which is not served; add --policy %[1]s",
			strings.ToLower(loadaware.Name))
	}
	args := map[string]interface{}{}
	if err := c.Policies[i].Args.ForPlugin().Decode(&args); err != nil {
		return usagef("policy %s: %w", loadaware.Name, err)
	}
	prometheus, _ := args["prometheus"].(map[string]interface{})
	if prometheus == nil {
		prometheus = map[string]interface{}{}
	}
	prometheus["url"] = url
	args["prometheus"] = prometheus
	text, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("write the arguments of %s: %w", loadaware.Name, err)
	}
	c.Policies[i].Args = extender.NewArguments(text)
	return nil
}
