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

// options are what the flags say.
type options struct {
	policies   []string
	config     string
	prometheus string
	listen     string
	kubeconfig string
	// kubeconfigGiven tells an empty kubeconfig, which is no cluster, from none.
	kubeconfigGiven           bool
	certFile, keyFile, caFile string
	maxBody                   int64
	verbosity                 int
	printVersion              bool
}

// usageError is a mistake in the command line or a file.
type usageError struct{ error }

// Invalid tells that what was given is wrong.
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

const usage = `Serves scheduling policies to kube-scheduler over HTTP: POST /filter, /prioritize, /preempt and /bind.

  pmk-extender --policy loadaware --prometheus http://prometheus.monitoring:9090 --listen :8888

Flags win over what the file of --config says.

`

// parse reads the command line. Help is flag.ErrHelp.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("pmk-extender", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Var((*list)(&o.policies), "policy", "`NAME` of a plugin to serve, such as loadaware; can be repeated")
	flags.StringVar(&o.config, "config", "", "read policies, their arguments and weights, and where to serve, from `FILE` (kind Extender)")
	flags.StringVar(&o.prometheus, "prometheus", "", "`URL` that the policy loadaware reads metrics from")
	flags.StringVar(&o.listen, "listen", "", "`ADDRESS` to serve at (default "+extender.DefaultListen+")")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE` that says how the API server is reached; empty runs without a cluster (default: the pod's own, else KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "serve HTTPS with the certificate in `FILE`; it is read anew when it changes")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "`FILE` with the certificate's key")
	flags.StringVar(&o.caFile, "client-ca-file", "", "answer only clients with a certificate signed by an authority in `FILE`")
	flags.Int64Var(&o.maxBody, "max-body", 0, fmt.Sprintf("largest request in `BYTES` (default %d)", extender.DefaultMaxBody))
	flags.IntVar(&o.verbosity, "v", 0, "`LEVEL` of what policies log: 5 for the reasons of decisions, 10 for each node")
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
		return o, usagef("there is an argument %q besides the flags (see --help)", flags.Arg(0))
	}
	flags.Visit(func(f *flag.Flag) { o.kubeconfigGiven = o.kubeconfigGiven || f.Name == "kubeconfig" })
	return o, nil
}

// configuration is what the file says, overruled by the flags.
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
		return nil, usagef("there is no policy to serve: name one with --policy, or several in the file of --config")
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
	switch {
	case c.MaxBodyBytes < 0:
		return nil, usagef("--max-body: %d is below 0", c.MaxBodyBytes)
	case (c.TLS.CertFile == "") != (c.TLS.KeyFile == ""):
		return nil, usagef("--tls-cert-file and --tls-private-key-file: one is given without the other")
	case c.TLS.ClientCAFile != "" && c.TLS.CertFile == "":
		return nil, usagef("--client-ca-file: clients show certificates over HTTPS only; give --tls-cert-file and --tls-private-key-file")
	}
	if o.prometheus == "" {
		return c, nil
	}
	return c, readFrom(c, o.prometheus)
}

// chosen are the named policies; one that the file has keeps its weight and arguments.
func chosen(names []string, inFile []extender.PolicyConfiguration) []extender.PolicyConfiguration {
	var all []extender.PolicyConfiguration
	for _, name := range names {
		one := extender.PolicyConfiguration{Name: name}
		if i := slices.IndexFunc(inFile, func(p extender.PolicyConfiguration) bool { return strings.EqualFold(p.Name, name) }); i >= 0 {
			one = inFile[i]
		}
		all = append(all, one)
	}
	return all
}

// readFrom has the policy loadaware read from a Prometheus.
func readFrom(c *extender.Configuration, url string) error {
	i := slices.IndexFunc(c.Policies, func(p extender.PolicyConfiguration) bool { return strings.EqualFold(p.Name, loadaware.Name) })
	if i < 0 {
		return usagef("--prometheus: the policy that reads from it is %s, which is not among those to serve; add --policy %[1]s", strings.ToLower(loadaware.Name))
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
