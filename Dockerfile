# The dashboard, trainers and workers on a CPU:
#   docker build --tag gan-dashboard .
#   docker run --publish 127.0.0.1:8501:8501 --volume gan-home:/home/gan/gan-dashboard gan-dashboard
# Everyone who reaches the port is a viewer until sign-in is set up (docs/sharing.md).
FROM python:3.12-slim-bookworm
WORKDIR /src
COPY locks/requirements.txt locks/
RUN pip install --no-cache-dir --require-hashes --requirement locks/requirements.txt
COPY . .
RUN pip install --no-cache-dir --no-deps . && useradd --create-home --uid 1000 gan && install --directory --owner gan /home/gan/gan-dashboard
USER 1000
WORKDIR /home/gan
VOLUME /home/gan/gan-dashboard
EXPOSE 8501
CMD ["gan-dashboard", "serve", "--address", "0.0.0.0"]
