/* A stand-in for the SPU library: it starts Chipless and has it drive the model.
 *
 * This file is part of Chipless and not the vendor's. The environment variable CHIPLESS names the program to start,
 * `chipless` without it. Requests and answers are JSON, a line each.
 */
#define _POSIX_C_SOURCE 200809L

#include "spu.h"
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static FILE *requests;
static FILE *answers;

static int failed(const char *what)
{
    fprintf(stderr, "spu_mock: %s\n", what);
    return kSpuMockFailure;
}

/* In the child: becomes the simulator. */
static void become_simulator(int input, int output)
{
    const char *program = getenv("CHIPLESS");
    if (program == NULL || program[0] == '\0')
        program = "chipless";
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0) {
        /* execvp changes none of its arguments; its type is older than const. */
        execvp(program, (char *const *)model_command);
    }
    fprintf(stderr, "spu_mock: cannot start %s: %s. Set the environment variable CHIPLESS to the path of chipless\n", program,
            strerror(errno));
    _exit(127);
}

static int start(void)
{
    int to[2], from[2];
    pid_t child;

    if (requests != NULL)
        return kSpuOk;
    if (pipe(to) != 0)
        return failed("no pipe to the simulator");
    if (pipe(from) != 0) {
        close(to[0]);
        close(to[1]);
        return failed("no pipe from the simulator");
    }
    /* A simulator that has ended is told by an answer that does not come, not by a signal. */
    signal(SIGPIPE, SIG_IGN);
    child = fork();
    if (child == 0) {
        close(to[1]);
        close(from[0]);
        become_simulator(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    if (child < 0) {
        close(to[1]);
        close(from[0]);
        return failed("no process for the simulator");
    }
    answers = fdopen(from[0], "r");
    requests = fdopen(to[1], "w");
    if (answers == NULL || requests == NULL)
        return failed("no stream to the simulator");
    return kSpuOk;
}

/* The answer to the request that was written, to be freed; NULL where none comes. */
static char *answer(void)
{
    char *line = NULL;
    size_t room = 0;

    if (fflush(requests) != 0 || ferror(requests) || getline(&line, &room, answers) <= 0) {
        free(line);
        failed("the simulator does not answer");
        return NULL;
    }
    return line;
}

/* The status that an answer stands for. */
static int status_of(const char *line)
{
    if (strncmp(line, "{\"ok\":true", strlen("{\"ok\":true")) == 0)
        return kSpuOk;
    fprintf(stderr, "spu_mock: %s", line);
    return strstr(line, "\"code\":\"kSpuSequenceError\"") != NULL ? kSpuSequenceError : kSpuMockFailure;
}

static int64_t element(const void *vector, size_t index, size_t bytes)
{
    switch (bytes) {
    case 1:
        return ((const int8_t *)vector)[index];
    case 2:
        return ((const int16_t *)vector)[index];
    case 4:
        return ((const int32_t *)vector)[index];
    default:
        return ((const int64_t *)vector)[index];
    }
}

static void set_element(void *vector, size_t index, size_t bytes, int64_t value)
{
    switch (bytes) {
    case 1:
        ((int8_t *)vector)[index] = (int8_t)value;
        break;
    case 2:
        ((int16_t *)vector)[index] = (int16_t)value;
        break;
    case 4:
        ((int32_t *)vector)[index] = (int32_t)value;
        break;
    default:
        ((int64_t *)vector)[index] = value;
        break;
    }
}

int SpuWriteData(unsigned sequence_id, const void *const vectors[])
{
    const struct model_sequence *sequence;
    size_t v, i;
    char *line;
    int status = start();

    if (status != kSpuOk)
        return status;
    if (sequence_id >= model_sequence_count)
        return failed("no sequence of this id");
    sequence = &model_sequences[sequence_id];
    fprintf(requests, "{\"write\": {\"sequence_id\": %u, \"vectors\": [", sequence_id);
    for (v = 0; v < sequence->input_count; v++) {
        const struct model_vector *vector = &sequence->inputs[v];
        fputs(v > 0 ? ", [" : "[", requests);
        for (i = 0; i < vector->length; i++)
            fprintf(requests, "%s%" PRId64, i > 0 ? "," : "", element(vectors[v], i, vector->element_bytes));
        fputc(']', requests);
    }
    fputs("]}}\n", requests);
    line = answer();
    if (line == NULL)
        return kSpuMockFailure;
    status = status_of(line);
    free(line);
    return status;
}

/* Behind the text that ends at the next quote. */
static const char *behind_name(const char *at)
{
    while (*at != '\0' && *at != '"')
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    return *at == '"' ? at + 1 : at;
}

/* Takes `"name":[1,2,3]` and returns what stands behind it; NULL where something else is found. */
static const char *take_vector(const char *at, const struct model_vector *vector, void *elements)
{
    size_t i;

    if (*at == ',')
        at++;
    if (*at != '"')
        return NULL;
    at = behind_name(at + 1);
    if (at[0] != ':' || at[1] != '[')
        return NULL;
    at += 2;
    for (i = 0; i < vector->length; i++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        if (end == at || (*end != ',' && *end != ']'))
            return NULL;
        set_element(elements, i, vector->element_bytes, value);
        at = *end == ',' ? end + 1 : end;
    }
    return *at == ']' ? at + 1 : NULL;
}

int SpuReadData(unsigned sequence_id, void *const vectors[])
{
    static const char values[] = "\"values\":{";
    const struct model_sequence *sequence;
    const char *at;
    size_t v;
    char *line;
    int status = start();

    if (status != kSpuOk)
        return status;
    if (sequence_id >= model_sequence_count)
        return failed("no sequence of this id");
    sequence = &model_sequences[sequence_id];
    fprintf(requests, "{\"read\": {\"sequence_id\": %u}}\n", sequence_id);
    line = answer();
    if (line == NULL)
        return kSpuMockFailure;
    status = status_of(line);
    /* In the names within an answer, quotes have a backslash before them: this is no name. */
    at = strstr(line, values);
    if (at != NULL)
        at += strlen(values);
    for (v = 0; status == kSpuOk && v < sequence->output_count; v++) {
        const struct model_vector *vector = &sequence->outputs[v];
        if (!model_has_program) {
            memset(vectors[v], 0, vector->length * vector->element_bytes);
            continue;
        }
        at = at == NULL ? NULL : take_vector(at, vector, vectors[v]);
        if (at == NULL)
            status = failed("the outputs of the sequence are not ready");
    }
    free(line);
    return status;
}
