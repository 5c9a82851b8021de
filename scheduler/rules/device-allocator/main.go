// Command device-allocator asks kube-scheduler's allocator of devices what the claims of a Pod get on
// each Node, many times over: a Case as a line of JSON on standard input, a Result as a line on
// standard output, in any order. The example `devices` of the crate `rules` writes the cases and
// judges the results.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

const (
	// The largest cases are around 100 KiB.
	lineBytesMax = 4 << 20
	casesAtOnce  = 2
)

func main() {
	klog.SetLogger(logr.Discard())
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "device-allocator:", err)
		os.Exit(1)
	}
}

func answerAll(in io.Reader, out io.Writer) error {
	cases, results := make(chan *Case, casesAtOnce), make(chan *Result, casesAtOnce)
	var readError error
	go func() {
		defer close(cases)
		readError = read(in, cases)
	}()
	var workers sync.WaitGroup
	for range casesAtOnce {
		workers.Go(func() {
			for one := range cases {
				results <- answer(one)
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	var writeError error
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	for result := range results {
		writeError = errors.Join(writeError, encoder.Encode(result))
	}
	return errors.Join(readError, writeError, buffered.Flush())
}

func read(in io.Reader, cases chan<- *Case) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		one := &Case{}
		if err := json.Unmarshal(lines.Bytes(), one); err != nil {
			return fmt.Errorf("a case cannot be read: %w", err)
		}
		cases <- one
	}
	return lines.Err()
}
