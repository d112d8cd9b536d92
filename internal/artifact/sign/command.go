package sign

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// CommandPrefix is the prefix of a key that is a command and not a file.
const CommandPrefix = "exec:"

// maxAnswer bounds the output of a command in bytes.
const maxAnswer = 64 << 10

// Command is a Signer whose key only a user's program can use, such as a key management service
// client.
type Command struct {
	words  []string
	public *PublicKey
}

// NewCommand asks a command for its public key. The words of the command are separated by spaces;
// no shell reads them. The command is run with one more argument:
//
//	public-key  prints the public key in PEM
//	sign        reads a SHA-256 digest, 32 bytes, from standard input, and prints its ASN.1 DER
//	            signature in base64
func NewCommand(ctx context.Context, command string) (*Command, error) {
	c := &Command{words: strings.Fields(command)}
	if len(c.words) == 0 {
		return nil, problem.Invalidf("", "%s names no command", CommandPrefix)
	}
	text, err := c.run(ctx, "public-key", nil)
	if err != nil {
		return nil, err
	}
	if c.public, err = ParsePublicKey(text); err != nil {
		return nil, fmt.Errorf("the output of `%s public-key`: %w", c, err)
	}
	return c, nil
}

// String returns the command line.
func (c *Command) String() string { return strings.Join(c.words, " ") }

// Public returns the public key.
func (c *Command) Public() *PublicKey { return c.public }

// Sign lets the command sign.
func (c *Command) Sign(ctx context.Context, digest [hashSize]byte) ([]byte, error) {
	text, err := c.run(ctx, "sign", digest[:])
	if err != nil {
		return nil, err
	}
	signature, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(text), nil)))
	if err != nil {
		return nil, fmt.Errorf("the output of `%s sign`: expected base64: %w", c, err)
	}
	return signature, nil
}

func (c *Command) run(ctx context.Context, argument string, input []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.words[0], append(c.words[1:len(c.words):len(c.words)], argument)...)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return nil, fmt.Errorf("run `%s %s`: %w: %.500s", c, argument, err, bytes.TrimSpace(exit.Stderr))
	case err != nil:
		return nil, fmt.Errorf("run `%s %s`: %w", c, argument, err)
	case len(out) > maxAnswer:
		return nil, fmt.Errorf("run `%s %s`: expected at most %d bytes, got %d", c, argument, maxAnswer, len(out))
	}
	return out, nil
}
