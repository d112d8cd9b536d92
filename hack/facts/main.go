// Command facts compares a Kubernetes release's source with the tables in this repository that
// differ between releases. It prints, for each table, that they agree, or the rows to add and the
// file to change.
//
//	facts RELEASE                   compare the tables with a release, such as v1.38.0
//	facts --as-of 1.36 v1.37.1      compare as if the tables ended with that minor release
//	facts --gates                   print versions/gates.txt from the sources of every release
//
// A release newer than the tables is compared with their newest minor release. Exit status: 0 the
// tables agree, 1 failure, 2 usage error, 3 they differ.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// errDiffer is returned when a table differs.
var errDiffer = errors.New("the tables differ from the release")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case err == nil:
		return
	case errors.Is(err, errDiffer):
		os.Exit(3)
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	for _, hint := range problem.Hints(err) {
		fmt.Fprintln(os.Stderr, "hint:", hint)
	}
	if problem.IsInvalid(err) {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("facts", flag.ContinueOnError)
	asOf := flags.String("as-of", "", "compare as if the tables ended with this `MINOR`")
	gates := flags.Bool("gates", false, "print versions/gates.txt")
	if err := flags.Parse(args); err != nil {
		return problem.Invalidf("", "read the flags: %w", err)
	}
	if *gates {
		return printGates(ctx, out)
	}
	if flags.NArg() != 1 {
		return problem.Invalidf("for example v1.38.0", "a release is required")
	}
	release, err := versions.Parse(flags.Arg(0))
	if err != nil {
		return err
	}
	facts, err := tablesFor(release, *asOf)
	if err != nil {
		return err
	}
	source, err := open(ctx, release)
	if err != nil {
		return err
	}
	before, err := openBefore(ctx, release)
	if err != nil {
		return err
	}
	tables := compare(source, before, facts)
	if _, err := io.WriteString(out, printed(tables, release, facts)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	if slices.ContainsFunc(tables, func(t table) bool { return len(t.Differences) > 0 }) {
		return errDiffer
	}
	return nil
}

// tablesFor returns a release in the minor release whose rows are compared: the given release's or,
// if the tables end before, the last minor in the tables.
func tablesFor(release versions.Release, asOf string) (versions.Release, error) {
	minor := strings.TrimPrefix(release.Nearest(), "1.")
	if asOf != "" {
		minor = strings.TrimPrefix(strings.TrimPrefix(asOf, "v"), "1.")
	}
	n, err := strconv.Atoi(minor)
	facts := versions.Release{Major: 1, Minor: n}
	if err != nil || !facts.Known() {
		return facts, problem.Invalidf("use one from "+versions.Oldest()+" to "+versions.Newest(),
			"invalid --as-of %q: not a minor release in the tables", asOf)
	}
	if release.Compare(facts) < 0 {
		facts = versions.Release{Major: 1, Minor: release.Minor}
	}
	return facts, nil
}

func environment() (build.Environment, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return build.Environment{}, fmt.Errorf("find the cache directory: %w", err)
	}
	return build.Environment{CacheDir: filepath.Join(cache, "pmk-sched"), Env: os.Environ()}, nil
}

// open downloads a release's modules.
func open(ctx context.Context, release versions.Release) (*source, error) {
	e, err := environment()
	if err != nil {
		return nil, err
	}
	dirs, err := build.SourceDirs(ctx, release, modules(), e)
	if err != nil {
		return nil, err
	}
	for _, required := range []string{kubernetes, staging} {
		if dirs[required] == "" {
			return nil, problem.Invalidf("try another patch of "+release.MinorString(),
				"the module proxy does not serve %s of %s", required, release)
		}
	}
	return &source{release: release, dirs: dirs, parsed: map[string]*ast.File{}}, nil
}

// openBefore opens the tested release of the minor release before, and returns nil if there is
// none.
func openBefore(ctx context.Context, release versions.Release) (*source, error) {
	for _, tested := range versions.Releases() {
		if tested.Minor < release.Minor {
			return open(ctx, tested)
		}
	}
	return nil, nil //nolint:nilnil // the oldest release has none before it
}

func printGates(ctx context.Context, out io.Writer) error {
	var all []*source
	for _, release := range slices.Backward(versions.Releases()) {
		s, err := open(ctx, release)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	_, err := io.WriteString(out, writeGates(all))
	return err
}
