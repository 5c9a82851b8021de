// Command differential asks the real kube-scheduler what it does with one Pod in one cluster, many
// times over: a Case as a line of JSON on standard input, a Result as a line on standard output, in
// any order. The example `differential` of the crate `rules` writes the cases and judges the
// results.
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
	// A case takes 100 ms, of which the processor works for 10: client-go looks only so often
	// whether its caches are filled.
	casesAtOnce = 8
)

func main() {
	// Scores are read from the logger of each case. All other logs are dropped.
	klog.SetLogger(logr.Discard())
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
}

func answerAll(in io.Reader, out io.Writer) error {
	cases, results := make(chan *Case), make(chan *Result)
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
	encoder := json.NewEncoder(out)
	for result := range results {
		writeError = errors.Join(writeError, encoder.Encode(result))
	}
	return errors.Join(readError, writeError)
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

// answer always gives a result: one case without an answer must not cost the answers to the others.
func answer(one *Case) *Result {
	result, err := schedule(one)
	if err != nil {
		result = &Result{Error: err.Error()}
	}
	result.Seed = one.Seed
	return result
}
