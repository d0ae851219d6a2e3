package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// migration is a pre-deploy command for tests: it reports that it runs, takes its time, and ends with a code.
type migration struct {
	url  string
	took time.Duration
	code int
}

// parseMigration reads the arguments after "migrate": an address, milliseconds, and an exit code.
func parseMigration(arguments []string) (migration, error) {
	if len(arguments) != 3 {
		return migration{}, fmt.Errorf("usage: sample-http migrate URL MILLISECONDS CODE")
	}
	milliseconds, err := strconv.ParseUint(arguments[1], 10, 31)
	if err != nil {
		return migration{}, fmt.Errorf("milliseconds must be a whole number")
	}
	code, err := strconv.ParseUint(arguments[2], 10, 7)
	if err != nil {
		return migration{}, fmt.Errorf("the code must be 0 to 127")
	}
	return migration{arguments[0], time.Duration(milliseconds) * time.Millisecond, int(code)}, nil
}

// run reports its version to the address, once, and waits. It returns the exit code.
func (m migration) run(log io.Writer) (int, error) {
	fmt.Fprintf(log, "%s migrates\n", version)
	client := &http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(m.url + "/" + version)
	if err != nil {
		return 0, err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("answered %s", answer.Status)
	}
	time.Sleep(m.took)
	fmt.Fprintf(log, "ends with %d, as it was asked to\n", m.code)
	return m.code, nil
}
