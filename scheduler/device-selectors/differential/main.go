// Command differential asks the CEL evaluator of kube-scheduler what expressions say of devices: a
// Question as a line of JSON on standard input, an Answer as a line on standard output, in the same
// order. The example `differential` of the crate `device-selectors` writes the questions and judges
// the answers.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
)

// An expression has at most 10 KiB, a device far less.
const lineBytesMax = 1 << 20

func main() {
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
}

func answerAll(in io.Reader, out io.Writer) error {
	questions, err := read(in)
	if err != nil {
		return err
	}
	answers := make([]*Answer, len(questions))
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for at := range next {
				answers[at] = answer(questions[at])
			}
		})
	}
	for at := range questions {
		next <- at
	}
	close(next)
	workers.Wait()
	lines := bufio.NewWriter(out)
	encoder := json.NewEncoder(lines)
	for _, one := range answers {
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	return lines.Flush()
}

func read(in io.Reader) ([]*Question, error) {
	var questions []*Question
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		one := &Question{}
		if err := json.Unmarshal(lines.Bytes(), one); err != nil {
			return nil, fmt.Errorf("a question cannot be read: %w", err)
		}
		questions = append(questions, one)
	}
	return questions, lines.Err()
}
