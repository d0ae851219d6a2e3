package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// connectLimit is how long a login may take.
const connectLimit = 10 * time.Second

// serveConnect logs in to the database whose address is in the variable, by a connection of its own, and answers 200 or, with the reason, 502.
func serveConnect(w http.ResponseWriter, r *http.Request, name string) {
	address, err := url.Parse(os.Getenv(name))
	if err == nil {
		err = login(r.Context(), address)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	fmt.Fprintln(w, "connected")
}

// unverified is for the platform's own certificates: which they are is no matter of this sample.
var unverified = &tls.Config{InsecureSkipVerify: true}

// login opens a connection as a client of the engine does, logs in, and closes it.
func login(ctx context.Context, address *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if address.Scheme == "https" {
		return loginClickHouse(ctx, address)
	}
	with, known := map[string]func(net.Conn, *url.URL) error{
		"postgresql": loginPostgreSQL,
		"mysql":      loginMariaDB,
		"rediss":     loginValkey,
	}[address.Scheme]
	if !known {
		return fmt.Errorf("no address of a database")
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.Host)
	if err != nil {
		return err
	}
	defer connection.Close()
	deadline, _ := ctx.Deadline()
	connection.SetDeadline(deadline)
	return with(connection, address)
}

func loginClickHouse(ctx context.Context, address *url.URL) error {
	transport := &http.Transport{TLSClientConfig: unverified, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address.Host+"/?query=SELECT+1", nil)
	if err != nil {
		return err
	}
	password, _ := address.User.Password()
	request.SetBasicAuth(address.User.Username(), password)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", response.StatusCode)
	}
	return nil
}

func loginValkey(plain net.Conn, address *url.URL) error {
	connection := tls.Client(plain, unverified)
	password, _ := address.User.Password()
	fmt.Fprintf(connection, "AUTH %s %s\r\n", address.User.Username(), password)
	answer, err := bufio.NewReader(connection).ReadString('\n')
	if err == nil && !strings.HasPrefix(answer, "+OK") {
		err = fmt.Errorf("refused: %s", strings.TrimSpace(answer))
	}
	return err
}

// loginPostgreSQL knows SCRAM-SHA-256 alone (RFC 5802).
func loginPostgreSQL(plain net.Conn, address *url.URL) error {
	binary.Write(plain, binary.BigEndian, []uint32{8, 80877103})
	answer := make([]byte, 1)
	if _, err := io.ReadFull(plain, answer); err != nil || answer[0] != 'S' {
		return fmt.Errorf("no TLS: %q %w", answer, err)
	}
	connection := tls.Client(plain, unverified)
	database := strings.TrimPrefix(address.Path, "/")
	start := fmt.Sprintf("\x00\x03\x00\x00user\x00%s\x00database\x00%s\x00\x00", address.User.Username(), database)
	connection.Write(binary.BigEndian.AppendUint32(nil, uint32(len(start)+4)))
	io.WriteString(connection, start)
	password, _ := address.User.Password()
	var first, nonce string
	for {
		kind, body, err := readMessage(connection)
		if err != nil {
			return err
		}
		switch {
		case kind == 'E':
			return fmt.Errorf("refused: %s", bytes.ReplaceAll(body, []byte{0}, []byte{' '}))
		case kind == 'Z':
			return nil
		case kind != 'R':
			continue
		}
		switch binary.BigEndian.Uint32(body) {
		case 10:
			random := make([]byte, 18)
			rand.Read(random)
			nonce = base64.StdEncoding.EncodeToString(random)
			first = "n=,r=" + nonce
			initial := append([]byte("SCRAM-SHA-256\x00"), binary.BigEndian.AppendUint32(nil, uint32(len(first)+3))...)
			writeMessage(connection, append(initial, "n,,"+first...))
		case 11:
			final, err := scramFinal(first, string(body[4:]), nonce, password)
			if err != nil {
				return err
			}
			writeMessage(connection, []byte(final))
		}
	}
}

func readMessage(from io.Reader) (byte, []byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length < 4 || length > 1<<20 {
		return 0, nil, fmt.Errorf("a message of %d bytes", length)
	}
	body := make([]byte, length-4)
	_, err := io.ReadFull(from, body)
	return head[0], body, err
}

func writeMessage(to io.Writer, body []byte) {
	head := append([]byte{'p'}, binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))...)
	to.Write(append(head, body...))
}

// scramFinal is the client's last message, after the server's first.
func scramFinal(clientFirst, serverFirst, nonce, password string) (string, error) {
	fields := map[byte]string{}
	for _, field := range strings.Split(serverFirst, ",") {
		if len(field) > 2 {
			fields[field[0]] = field[2:]
		}
	}
	salt, err := base64.StdEncoding.DecodeString(fields['s'])
	iterations, bad := strconv.Atoi(fields['i'])
	if err != nil || bad != nil || !strings.HasPrefix(fields['r'], nonce) {
		return "", fmt.Errorf("no answer of SCRAM")
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(key []byte, text string) []byte {
		hash := hmac.New(sha256.New, key)
		io.WriteString(hash, text)
		return hash.Sum(nil)
	}
	bare := "c=biws,r=" + fields['r']
	proof := mac(salted, "Client Key")
	stored := sha256.Sum256(proof)
	signature := mac(stored[:], clientFirst+","+serverFirst+","+bare)
	for i := range proof {
		proof[i] ^= signature[i]
	}
	return bare + ",p=" + base64.StdEncoding.EncodeToString(proof), nil
}

// loginMariaDB knows mysql_native_password alone, over TLS.
func loginMariaDB(plain net.Conn, address *url.URL) error {
	greeting, _, err := readPacket(plain)
	if err != nil {
		return err
	}
	_, rest, found := bytes.Cut(greeting, []byte{0})
	if !found || len(rest) < 43 {
		return fmt.Errorf("no greeting")
	}
	salt := append(append([]byte{}, rest[4:12]...), rest[31:43]...)
	// Of the protocol of 4.1 with TLS, secure connection, plugins, and the name of a database.
	head := binary.LittleEndian.AppendUint32(nil, 1|8|512|2048|32768|524288)
	head = append(binary.LittleEndian.AppendUint32(head, 1<<24-1), 45)
	head = append(head, make([]byte, 23)...)
	writePacket(plain, 1, head)
	connection := tls.Client(plain, unverified)
	password, _ := address.User.Password()
	body := append(append(head, address.User.Username()...), 0, 20)
	body = append(body, nativePassword(salt, password)...)
	body = append(append(body, strings.TrimPrefix(address.Path, "/")...), 0)
	writePacket(connection, 2, append(body, "mysql_native_password\x00"...))
	for {
		answer, sequence, err := readPacket(connection)
		if err != nil || len(answer) == 0 {
			return fmt.Errorf("no answer: %w", err)
		}
		switch answer[0] {
		case 0:
			return nil
		case 0xfe:
			// Another salt, such as for the next password of the user.
			_, next, _ := bytes.Cut(answer[1:], []byte{0})
			writePacket(connection, sequence+1, nativePassword(bytes.TrimRight(next, "\x00"), password))
		default:
			return fmt.Errorf("refused: %s", answer[1:])
		}
	}
}

func readPacket(from io.Reader) ([]byte, byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, 0, err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(from, body)
	return body, head[3], err
}

func writePacket(to io.Writer, sequence byte, body []byte) {
	head := []byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), sequence}
	to.Write(append(head, body...))
}

// nativePassword is SHA1(password) XOR SHA1(salt, SHA1(SHA1(password))).
func nativePassword(salt []byte, password string) []byte {
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	with := sha1.Sum(append(append([]byte{}, salt...), twice[:]...))
	for i := range once {
		once[i] ^= with[i]
	}
	return once[:]
}
