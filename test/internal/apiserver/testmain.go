//go:build linux

package apiserver

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package with one API server for all of them, and returns the exit
// status. A test that stops the server must start it again.
//
//	var server *apiserver.Server
//
//	func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }
func Main(m *testing.M, server **Server) (status int) {
	ctx := context.Background()
	binaries, err := FindBinaries(ctx)
	if err == nil {
		*server, err = Start(ctx, binaries)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start API server for the tests:", err)
		return 1
	}
	defer func() {
		if err := (*server).Close(); err != nil {
			fmt.Fprintln(os.Stderr, "stop API server of the tests:", err)
			status = 1
		}
	}()
	return m.Run()
}
